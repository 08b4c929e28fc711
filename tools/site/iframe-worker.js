// Browsers start no worker from a file, and the search of the theme is one. A frame of the page runs it instead.
// The name makes the plugin `offline` leave out its own substitute, which it loads from another host.
const Searcher = location.protocol === "file:" ? class extends EventTarget {
  constructor(address) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.documentElement.append(frame);
    this.inside = frame.contentWindow;
    this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    const script = frame.contentDocument.createElement("script");
    this.ready = new Promise((resolve) => (script.onload = resolve));
    script.src = address;
    frame.contentDocument.head.append(script);
  }

  postMessage(data) {
    this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
  }
} : Worker;

const FEW = 3; // pages
const QUERY = 2, RESULT = 3; // types of messages
const IDLE = new Set(("a about after all am an and any are as at be been but by can could did do does for from get had has have how i if in into is it " +
  "its just keep let like make me my need no not of on only or our out over set should so still than that the them then there they this to too two up " +
  "us use used using want was way we what when where which while who why will with without would you your").split(" "));

/** The theme finds pages with any of the words. Those with all of them are left, and where these are few, those with most. */
function best(pages) {
  const count = (sections) => new Set(sections.flatMap(({ terms }) => Object.keys(terms).filter((term) => terms[term]))).size;
  const left = [];
  for (let words = Math.max(...pages.map(count)); words > 0 && left.length < FEW; words--) left.push(...pages.filter((page) => count(page) === words));
  return left;
}

window.Worker = class extends Searcher {
  constructor(address) {
    super(address);
    this.addEventListener("message", ({ data: { type, data } }) => { if (type === RESULT) data.items = best(data.items); });
  }

  postMessage({ type, data }) {
    const words = type === QUERY ? data.split(/\s+/).filter((word) => !IDLE.has(word.toLowerCase().replace(/[?!.,]+$/, ""))) : [];
    super.postMessage({ type, data: words.join(" ").replace(/(\w{2})(?:ie)?s(?!\w)/g, "$1") || data });
  }
};

// What all pages have: words, elements, tables that can be sorted, and the section that compares policies.

const DATA = JSON.parse(document.getElementById("data").textContent);
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];
const { duration, listed } = gantt;
const element = (id) => document.getElementById(id);

// ---- words and numbers ----

// Made once each: making one takes longer than all that it formats for a cell.
const FORMATS = [0, 1, 2, 3, 4, 5, 6].map((digits) => new Intl.NumberFormat("en", { maximumFractionDigits: digits }));

function number(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const digits = Math.abs(value) >= 1000 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return FORMATS[Math.min(digits, 6)].format(value);
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

/** Return a value in words: a time as a duration, others as numbers. */
const inWords = (value, unit) => (unit === "s" ? duration(value) : number(value));

// ---- elements ----

function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function draw(name, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

/** Fill a table. heads: texts, or a text and what a tooltip says of it. texts: the columns that are no numbers. */
function table(into, heads, rows, texts = [0]) {
  const isText = (i) => (texts.includes(i) ? { class: "text" } : {});
  const head = make("tr", {}, ...heads.map((one, i) => {
    const [text, about] = [one].flat();
    return make("th", { scope: "col", tabindex: 0, ...isText(i), ...(about ? { "aria-description": about } : {}) }, text);
  }));
  const body = rows.map((row) =>
    make("tr", {}, ...row.map((cell, i) => (cell instanceof Node ? cell : make("td", isText(i), cell)))));
  into.replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
}

/** Return a cell that is sorted by its value, whatever its words. */
const cell = (value, text, attributes = {}) => make("td", value === null ? attributes : { "data-value": value, ...attributes }, text);

function options(select, names, selected) {
  select.replaceChildren(...names.map((name, i) => {
    const option = make("option", { value: i }, name);
    option.selected = i === selected;
    return option;
  }));
}

const short = (text, pixels) => (text.length * 7 < pixels ? text : `${text.slice(0, Math.floor(pixels / 7) - 2)}…`);
/** Return the width of all charts; asked once before several are drawn, as each answer lays the page out. */
const chartWidth = () => Math.max(280, Math.min(960, document.querySelector("main").clientWidth));

// ---- heads of columns: they sort, and say what is below them ----

// Choosing a head, by mouse or keyboard, sorts its table; choosing it again turns the order round. Numbers come before texts.
function sortBy(head) {
  const column = head.cellIndex;
  const rows = [...head.closest("table").tBodies[0].rows];
  const turn = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  const text = (row) => row.cells[column]?.textContent.trim() ?? "";
  const value = (row) => Number.parseFloat(row.cells[column]?.dataset.value ?? text(row).replaceAll(",", ""));
  rows.sort((a, b) => {
    const [first, second] = [value(a), value(b)];
    const isText = Number.isNaN(first) - Number.isNaN(second);
    return isText || turn * (Number.isNaN(first) ? text(a).localeCompare(text(b)) : first - second);
  });
  for (const row of rows) row.parentNode.append(row);
  for (const one of head.parentNode.cells) one.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", turn > 0 ? "ascending" : "descending");
}

function showTip(head) {
  const tip = element("tip");
  tip.hidden = !head?.getAttribute("aria-description");
  if (tip.hidden) return;
  tip.textContent = head.getAttribute("aria-description");
  const place = head.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(place.left, document.documentElement.clientWidth - tip.offsetWidth - 4)) + scrollX}px`;
  tip.style.top = `${place.bottom + 4 + scrollY}px`;
}

const headOf = (event) => (event.target instanceof Element ? event.target.closest("th") : null);
document.addEventListener("click", (event) => { if (headOf(event)) sortBy(headOf(event)); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") showTip(null);
  if (event.target.tagName !== "TH" || !["Enter", " "].includes(event.key)) return;
  event.preventDefault();
  sortBy(event.target);
});
for (const event of ["pointerover", "focusin"]) document.addEventListener(event, (happened) => showTip(headOf(happened)));

// ---- policies side by side ----

/** Return the best figure as it is shown; null if all look alike. */
function best(rows, measure) {
  const values = rows.map((one) => one.figures[measure.key][0]).filter((value) => value !== null);
  const shown = (value) => inWords(value, measure.unit);
  if (new Set(values.map(shown)).size < 2) return null;
  return shown(measure.higher ? Math.max(...values) : Math.min(...values));
}

function figuresTable({ measures, rows }) {
  const heads = measures.map((one) => [one.unit === "s" ? one.label : `${one.label} ${one.unit}`.trim(), one.about]);
  const bests = measures.map((one) => best(rows, one));
  const into = make("table", { class: "figures" });
  table(into, ["policy", ...heads], rows.map((row) => [
    row.policy,
    ...measures.map((measure, i) => {
      const [mean, low, high] = row.figures[measure.key];
      const words = mean === null && row.instead ? row.instead : inWords(mean, measure.unit);
      const made = cell(mean, words, words === bests[i] ? { class: "best" } : {});
      if (low !== null && high > low) made.append(make("span", { class: "interval" }, `${inWords(low, measure.unit)} to ${inWords(high, measure.unit)}`));
      return made;
    }),
  ]));
  return make("div", { class: "wide" }, into);
}

/** Draw a dot for the mean of each policy, and a bar for its interval. */
function intervals(into, rows, measure, width) {
  const left = Math.min(170, width * 0.4), right = 100, step = 22, height = rows.length * step + 30;
  const ends = rows.map((row) => row.figures[measure.key]).filter(([mean]) => mean !== null);
  const most = Math.max(1e-9, ...ends.map(([mean, , high]) => high ?? mean)), least = Math.min(0, ...ends.map(([mean, low]) => low ?? mean));
  const x = (value) => left + ((value - least) / (most - least)) * (width - left - right);
  const top = best(rows, measure);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${measure.label} by policy` });
  svg.append(draw("line", { x1: x(0), x2: x(0), y1: 4, y2: height - 24, class: "axis" }));
  rows.forEach((row, k) => {
    const y = 16 + k * step, dash = DASHES[row.dash % DASHES.length];
    svg.append(draw("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, short(row.policy, left)));
    const [mean, low, high] = row.figures[measure.key];
    if (mean === null) {
      svg.append(draw("text", { x: left + 6, y: y + 4, class: "faint" }, row.instead || "no data"));
      return;
    }
    const words = inWords(mean, measure.unit);
    svg.append(draw("line", { x1: x(0), x2: x(mean), y1: y, y2: y, stroke: row.colour, "stroke-width": 2, "stroke-dasharray": dash }));
    svg.append(draw("line", { x1: x(low ?? mean), x2: x(high ?? mean), y1: y, y2: y, stroke: row.colour, "stroke-width": 6, "stroke-opacity": 0.5 }));
    svg.append(draw("circle", { cx: x(mean), cy: y, r: 5, fill: row.colour }));
    svg.append(draw("text", { x: x(high ?? mean) + 10, y: y + 4, "font-weight": words === top ? 700 : 400 }, words));
  });
  const unit = measure.unit === "s" ? "" : ` ${measure.unit}`;
  svg.append(draw("text", { x: left, y: height - 4, class: "faint" }, short(`${measure.label}${unit}: ${measure.higher ? "more" : "less"} is better`, width - left)));
  into.replaceChildren(svg);
}

/** Return a section, and the function that draws its chart once it is in the page. */
function sectionOf(one) {
  const chart = make("div", { class: "chart" }), choice = make("select");
  options(choice, one.measures.map((measure) => measure.label), 0);
  const drawChart = (width) => { if (one.measures.length) intervals(chart, one.rows, one.measures[+choice.value], width); };
  choice.addEventListener("change", () => drawChart(chartWidth()));
  const made = make("section", {}, make("h2", {}, one.title),
    ...(one.sentence ? [make("p", { class: "sentence" }, `${one.sentence}.`)] : []),
    figuresTable(one),
    ...one.notes.map((note) => make("p", { class: "hint" }, note)),
    ...(one.measures.length ? [make("label", {}, "Compare by ", choice), chart] : []));
  return [made, drawChart];
}

const parts = (DATA.sections ?? []).map(sectionOf);
const drawCharts = () => { const width = chartWidth(); for (const [, drawChart] of parts) drawChart(width); };
document.querySelector("main").append(...parts.map(([made]) => made));
drawCharts();
window.addEventListener("resize", drawCharts);
document.documentElement.dataset.readyMs = Math.round(performance.now());

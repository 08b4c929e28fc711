"use strict";

// The state of the page is what its fields say; the address keeps it. `source` is all that it asks.
const FIELDS = ["machine", "count", "fabric", "text", "gpu_model", "pattern", "gpus", "groups", "busy", "pinned", "unhealthy", "links"];
const BLANK = { count: 1, pattern: "ring", gpus: "4" };
const OPENING = "some in use, scattered";
const DEGREES = ["tensor", "pipeline", "data"];
const MOST_IN_ADDRESS = 30000;
const MOST_SHOWN = 5000; // of a text to copy, which may hold a topology
const form = document.getElementById("fields");
const element = (id) => document.getElementById(id);
const view = { tab: "place", policy: "", preset: "", open: -1, answer: null, style: "", start: null };

/** Put GPUs into the list of a field, or take them out; what they were in otherwise, they leave. */
function mark(field, gpus, isIn) {
  for (const name of ["busy", "pinned", "unhealthy"]) {
    const listed = read(form[name].value);
    for (const gpu of gpus) if (name === field && isIn) listed.add(gpu); else if (name === field || isIn) listed.delete(gpu);
    form[name].value = written(listed);
  }
}

/** Random GPUs are in use, so many of the healthy ones as the field beside the button says. */
function scatter() {
  const out = read(form.unhealthy.value);
  const order = Array.from({ length: view.answer.about.gpus }, (_, gpu) => [Math.random(), gpu]).filter(([, gpu]) => !out.has(gpu)).sort(([a], [b]) => a - b);
  const drawn = order.slice(0, Math.round((order.length * form.share.value) / 100));
  form.busy.value = written(drawn.map(([, gpu]) => gpu));
  form.pinned.value = "";
  changed();
}

function toggle(field, gpus) {
  const listed = read(form[field].value);
  mark(field, gpus, !gpus.every((gpu) => listed.has(gpu)));
  changed();
}

/** A link at half speed, then lost, then whole. */
function nextFault(pair) {
  const faults = new Map(form.links.value.split(",").map((part) => part.trim().split("=")).filter((part) => part.length === 2));
  const now = faults.get(pair);
  if (now === "half") faults.set(pair, "lost");
  else if (now === "lost") faults.delete(pair);
  else faults.set(pair, "half");
  form.links.value = [...faults].map(([name, how]) => `${name}=${how}`).join(", ");
  changed();
}

// ---- the state, and the address that keeps it ----

function stateNow() {
  const state = { policy: view.policy, preset: view.preset, open: view.open };
  for (const name of FIELDS) state[name] = form[name].value;
  state.sensitive = form.sensitive.checked;
  state.count = Math.trunc(+form.count.value) || 1;
  const degrees = DEGREES.map((name) => [name, element(name).value.trim()]).filter(([, value]) => value);
  state.parallel = degrees.map(([name, value]) => `${name}=${value}`).join(",");
  if (state.text) state.machine = "";
  return state;
}

function show(state) {
  for (const name of FIELDS) form[name].value = state[name] ?? BLANK[name] ?? "";
  form.sensitive.checked = state.sensitive !== false;
  const degrees = new Map((state.parallel ?? "").split(",").map((part) => part.split("=")));
  for (const name of DEGREES) element(name).value = degrees.get(name) ?? "";
  view.policy = view.start.policies.includes(state.policy) ? state.policy : view.start.default;
  view.open = Number.isInteger(state.open) ? state.open : -1;
  view.preset = view.start.presets.includes(state.preset) ? state.preset : "";
  for (const one of form.querySelectorAll("details")) if ([...one.querySelectorAll("[name],input")].some(isSet)) one.open = true;
  showQueue(state);
}

const isSet = (field) => field.type === "checkbox" ? !field.checked : field.type !== "file" && field.value !== "";

function keepInAddress(state) {
  const kept = Object.fromEntries(Object.entries(state).filter(([, value]) => value !== "" && value !== -1));
  if ((kept.text ?? "").length > MOST_IN_ADDRESS) delete kept.text;
  const hash = `#${encodeURIComponent(JSON.stringify(kept))}`;
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

/** The state that the address holds; what it does not say is that of the beginning. */
function stateOfAddress() {
  const first = view.start.start;
  try {
    const found = JSON.parse(decodeURIComponent(location.hash.slice(1)));
    if (!found || typeof found !== "object" || Array.isArray(found)) return first;
    return "machine" in found || "text" in found ? found : { ...first, ...found };
  } catch {
    return first;
  }
}

// One question at a time: while it is open, only the newest state waits.
let isAsking = false;
let waiting = null;

async function changed() {
  const state = stateNow();
  keepInAddress({ ...state, ...queueInAddress() });
  waiting = state;
  if (isAsking) return;
  isAsking = true;
  while (waiting) {
    const asked = waiting;
    waiting = null;
    if (view.tab === "queue") {
      await simulateQueue(asked);
      continue;
    }
    const begin = performance.now();
    try {
      const found = await source.answer({ ...asked, ...drawnSize(), part: "choices" });
      if (asked.preset && asked.preset === view.preset) fill(found.fields);
      draw(found);
      const ms = Math.round(performance.now() - begin);
      document.documentElement.dataset.answeredMs = ms;
      element("spent").textContent = `Arrow keys walk through the policies. Answered and drawn in ${ms} ms.`;
      if (!waiting) details(await source.answer({ ...asked, part: "detail" }));
    } catch (error) {
      problem({ field: "", message: error instanceof TypeError ? "the server has ended; start topoplace explore again" : error.message, line: null });
    }
  }
  isAsking = false;
}

function drawnSize(id = "drawing") {
  const within = (pixels, most) => Math.max(320, Math.min(most, Math.round(pixels)));
  const above = getComputedStyle(element("picture")).position === "sticky" ? element(id).getBoundingClientRect().top + scrollY : 144;
  return { width: within(element(id).clientWidth || 800, 800), height: within(innerHeight - Math.min(above, 340), 1600) };
}

/** What a preset stands for goes into the fields, from where it is changed further. */
function fill(fields) {
  for (const [name, value] of Object.entries(fields)) form[name].value = value;
  view.preset = "";
  keepInAddress({ ...stateNow(), ...queueInAddress() });
}

// ---- what an answer says ----

function draw(found) {
  view.answer = found;
  problem(found.problem);
  if (found.about) about(found.about);
  if (found.drawing) picture(found.drawing);
  rows(found.rows);
  const row = found.rows.find((one) => one.policy === view.policy) ?? found.rows[0];
  element("choice").textContent = row ? takenIn(row, found.drawing?.machines ?? []) : "";
}

function takenIn(row, machines) {
  if (!row.gpus) return `${row.policy} places nothing.`;
  const on = machines.length > 1 ? ` on ${plural(machines.length, "machine")}` : machines.length ? ` on ${machines[0]}` : "";
  return `${row.policy} takes GPUs ${byTask(row.gpus)}${on}: ${duration(row.seconds)}.`;
}

function about(where) {
  options(form.preset, ["", ...where.presets], ["start with …", ...where.presets]);
  element("about").textContent = [`${where.name}: ${plural(where.gpus, "GPU")} on ${plural(where.machines, "machine")}`, ...where.notes].join(". ");
}

function details(found) {
  if (found.detail) detail(found.detail, found.rows);
  for (const id of ["why", "after", "take"]) element(id).parentElement.hidden = !found.detail;
}

function problem(wrong) {
  const box = element("problem");
  box.hidden = !wrong;
  for (const field of form.elements) field.classList?.toggle("wrong", Boolean(wrong?.field) && field.name === wrong.field);
  for (const name of DEGREES) element(name).classList.toggle("wrong", wrong?.field === "parallel");
  if (!wrong) return;
  const hides = form[wrong.field]?.closest?.("details") ?? (wrong.field === "parallel" && element("tensor").closest("details"));
  if (hides) hides.open = true;
  box.querySelector("p").textContent = wrong.message;
  const line = box.querySelector("pre");
  line.hidden = !wrong.line;
  line.textContent = wrong.line ? `${wrong.line.number}: ${wrong.line.text}` : "";
}

function rows(all) {
  const slowest = Math.max(...all.map((row) => row.seconds ?? 0));
  const list = element("rows");
  list.replaceChildren(...all.map((row) => rowOf(row, slowest)));
  const selected = list.querySelector("[aria-selected=true]");
  if (selected) list.setAttribute("aria-activedescendant", selected.id);
  else list.removeAttribute("aria-activedescendant");
  element("verdict").textContent = verdict(all);
}

function carried(one) {
  return number(one.ring) + (one.nvls ? " NVLS" : "");
}

function verdict(all) {
  const placed = all.filter((row) => row.gpus);
  if (!placed.length) return all.length ? "No policy places this job." : "";
  const [best, worst] = [placed[0], placed[placed.length - 1]];
  const rated = placed.filter((row) => row.ring).sort((one, other) => one.ring - other.ring);
  const factor = worst.seconds && best.seconds ? worst.seconds / best.seconds : 1;
  if (factor < 1.005) return `All ${plural(placed.length, "choice")} communicate equally fast.`;
  const what = rated.some((row) => row.nvls) ? "all-reduces" : "rings";
  const rings = best.ring ? `; ${what} carry ${number(best.ring)} in place of ${number(rated[0].ring)} GB/s` : "";
  return `The best choice communicates ${number(factor)} × as fast as the worst${rings}.`;
}

function rowOf(row, slowest) {
  const made = make("div", { class: "row", role: "option", id: `row-${row.policy}`, "data-policy": row.policy });
  made.setAttribute("aria-selected", row.policy === view.policy);
  made.append(make("span", { class: "name" }, row.policy));
  if (!row.gpus) {
    made.append(make("span", { class: "refusal" }, row.refusal));
    return made;
  }
  const bar = make("i");
  bar.style.width = `${slowest && row.seconds !== null ? Math.max(1, (100 * row.seconds) / slowest) : 100}%`;
  made.append(
    make("span", { class: "time" }, bar, make("b", {}, duration(row.seconds) + (row.note ? `, ${row.note}` : ""))),
    make("span", { class: "ring number" }, carried(row)),
    make("span", { class: "slowest" }, row.slowest),
    make("span", { class: "gpus" }, byTask(row.gpus)),
    make("span", { class: "took number" }, number(row.microseconds)),
  );
  return made;
}

function detail(found, all) {
  const row = all.find((one) => one.policy === found.policy);
  const reason = row.gpus ? `${row.policy} takes GPUs ${byTask(row.gpus)}. Slowest: ${row.slowest || "nothing communicates"}. ${found.rings}` : `${row.policy} places nothing: ${row.refusal}.`;
  element("reason").textContent = reason.trim().replace(/\.\.$/, ".") + (found.complete ? "" : " The search for other candidates ended at its limit.");
  const heads = ["GPUs by task", "communicates", "rings GB/s", "slowest", "proven"];
  element("candidates").hidden = !found.candidates.length;
  table("candidates", heads, found.candidates.map((one) => [byTask(one.gpus), duration(one.seconds), carried(one), one.slowest, one.optimal ? "yes" : "no"]), [3]);
  const left = found.left.map((one) => [plural(one.size, "GPU"), one.fits ? "fits" : "does not fit", one.size === 1 ? "–" : carried(one), one.machines ? plural(one.machines, "machine") : "–"]);
  table("left", ["a job of", "", "rings GB/s", "on"], left.length ? left : [["none", "no GPU is free", "–", "–"]], []);
  copies(found);
}

function table(id, heads, lines, texts) {
  const cell = (name) => (text, i) => make(name, texts.includes(i) ? { class: "text" } : {}, text);
  const body = lines.map((line) => make("tr", {}, ...line.map(cell("td"))));
  element(id).replaceChildren(make("thead", {}, make("tr", {}, ...heads.map(cell("th")))), make("tbody", {}, ...body));
}

function copies(found) {
  const texts = [["Command", found.command], ["Python", found.python], ["Environment", found.environment]];
  for (const [name, text] of Object.entries(found.launch)) texts.push([name, text]);
  if (found.start) texts.push(["Start it", found.start]);
  const boxes = texts.filter(([, text]) => text).map(([title, text]) => {
    const button = make("button", { type: "button", "aria-label": `Copy: ${title}` }, "Copy");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    });
    const shown = text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)} …` : text;
    return make("section", {}, make("h3", {}, title), button, make("pre", { tabindex: "0" }, shown));
  });
  element("copies").replaceChildren(...boxes);
}

// ---- the list of policies ----

function choose(policy) {
  view.policy = policy;
  for (const one of element("rows").children) one.setAttribute("aria-selected", one.dataset.policy === policy);
  const row = element(`row-${policy}`);
  element("rows").setAttribute("aria-activedescendant", row.id);
  row.scrollIntoView({ block: "nearest" });
  changed();
}

function rowKey(event) {
  const all = [...element("rows").children];
  const now = all.findIndex((one) => one.dataset.policy === view.policy);
  const next = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: all.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  if (all[next]) choose(all[next].dataset.policy);
}

// ---- files ----

function save(name, text, type) {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function saveSvg() {
  const text = new XMLSerializer().serializeToString(element("drawing").firstElementChild);
  save("topoplace.svg", text.replace(">", `>${view.style}`), "image/svg+xml");
}

async function saveTopology() {
  try {
    save("topology.json", await source.topology(stateNow()), "application/json");
  } catch (error) {
    problem({ field: "", message: error.message, line: null });
  }
}

async function readFile(file) {
  if (!file) return;
  if (file.size > 4 << 20) return problem({ field: "text", message: `${file.name}: ${number(file.size / 1e6)} MB, more than 4`, line: null });
  newMachine({ text: await file.text() });
}

/** Another machine: what was in use or broken on the one before says nothing of it. On an idle one, most policies choose alike. */
function newMachine(fields, preset = OPENING) {
  for (const name of ["busy", "pinned", "unhealthy", "links"]) form[name].value = "";
  view.open = -1;
  view.preset = preset;
  for (const [name, value] of Object.entries(fields)) form[name].value = value;
  changed();
}

// ---- the whole ----

function options(select, names, labels = names) {
  select.replaceChildren(...names.map((name, i) => make("option", { value: name }, labels[i])));
}

function listen() {
  let later = 0;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    const { name, id } = event.target;
    if (id === "file") return;
    if (name === "machine") return newMachine({ text: "" });
    if (name === "count") return newMachine({});
    if (name === "fabric") return newMachine({ count: Math.max(form.count.value, 16) });
    if (name === "preset") return newMachine({}, event.target.value);
    if (name === "share") return scatter();
    if (name === "text") return newMachine({ machine: "" });
    if (name === "pattern" || name === "gpus") for (const one of DEGREES) element(one).value = "";
    clearTimeout(later);
    later = setTimeout(changed, event.target.tagName === "SELECT" ? 0 : 120);
  });
  element("clear").addEventListener("click", () => newMachine({}, "idle"));
  element("scatter").addEventListener("click", scatter);
  element("back").addEventListener("click", () => open(-1));
  element("save").addEventListener("click", saveSvg);
  element("json").addEventListener("click", saveTopology);
  element("file").addEventListener("change", (event) => readFile(event.target.files[0]));
  element("rows").addEventListener("keydown", rowKey);
  element("rows").addEventListener("click", (event) => {
    const row = event.target.closest("[data-policy]");
    if (row) choose(row.dataset.policy);
  });
  const drawing = element("drawing");
  drawing.addEventListener("pointerdown", pointerDown);
  drawing.addEventListener("contextmenu", rightClick);
  drawing.addEventListener("keydown", drawingKey);
  listenToQueue();
  addEventListener("pointermove", pointerMove);
  addEventListener("pointerup", pointerUp);
  addEventListener("pointercancel", pointerUp);
  addEventListener("hashchange", () => { show(stateOfAddress()); changed(); });
  addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
  addEventListener("dragleave", () => document.body.classList.remove("dropping"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    readFile(event.dataTransfer.files[0]);
  });
}

async function begin() {
  view.start = await source.start();
  const { machines, patterns, fabrics, own } = view.start;
  document.body.classList.toggle("recorded", source.isRecorded);
  element("recorded").hidden = !source.isRecorded;
  if (source.isRecorded) options(form.machine, machines);
  else options(form.machine, ["", ...machines], [own ? `yours: ${own}` : "from the text", ...machines]);
  options(form.fabric, fabrics, fabrics.map((name) => name || "one network"));
  options(form.pattern, patterns);
  show(stateOfAddress());
  listen();
  await changed();
}

begin();

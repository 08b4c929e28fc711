"use strict";

// The second tab: a simulated queue, as a chart over time, and the machine as it is at the chosen time.
const QUEUE = { jobs: null, load: null, seed: 0, compared: "baseline, least-time" }; // null: what is usual
const PLAY_S = 20;
const FRAME_MS = 40;
const STEP_MS = 1000; // for people who want less motion
const queue = { found: null, run: null, chart: null, time: 0, holder: new Map(), playing: 0 };

// ---- the fields, and the address ----

function queueNow() {
  const { jobs, load, seed, compared } = element("asked").elements;
  const given = ({ value }) => (value === "" ? null : +value);
  return { jobs: given(jobs), load: given(load), seed: +seed.value, compared: compared.value };
}

/** What the address says of the queue, if it is shown. */
function queueInAddress() {
  return view.tab === "queue" ? { tab: "queue", ...queueNow() } : {};
}

function showQueue(state) {
  for (const [name, value] of Object.entries(QUEUE)) element("asked").elements[name].value = state[name] ?? value ?? "";
  openTab(state.tab === "queue" && !source.isRecorded ? "queue" : "place");
}

function openTab(name) {
  view.tab = name;
  for (const one of ["place", "queue"]) {
    element(one).hidden = one !== name;
    element(`tab-${one}`).setAttribute("aria-selected", one === name);
    element(`tab-${one}`).setAttribute("tabindex", one === name ? 0 : -1);
  }
  document.body.classList.toggle("queueing", name === "queue");
  stop();
}

// ---- an answer ----

async function simulateQueue(state) {
  stop();
  element("concluded").textContent = "Simulating …";
  const found = await source.queue({ state: { ...state, ...drawnSize("held"), part: "all" }, ...queueNow() });
  const wrong = found.problem;
  element("wrong").hidden = !wrong;
  element("wrong").textContent = wrong?.message ?? "";
  for (const field of element("asked").elements) field.classList.toggle("wrong", Boolean(wrong) && field.name === wrong.field);
  element("concluded").textContent = found.conclusion;
  element("remarks").textContent = found.notes.join(". ");
  if (wrong) return;
  queue.found = found;
  about(found.about);
  const shown = queue.run?.policy;
  const better = ({ figures: a }, { figures: b }) => a.rejected - b.rejected || (a.mean_turnaround ?? Infinity) - (b.mean_turnaround ?? Infinity);
  const best = [...found.runs].sort(better)[0];
  options(element("run"), found.runs.map((run) => run.policy));
  element("run").value = found.runs.some((run) => run.policy === shown) ? shown : best.policy;
  const share = (value) => (value === null ? "–" : `${number(100 * value)} %`);
  const heads = ["policy", "mean turnaround", "mean wait", "GPUs in use", "makespan", "rejected"];
  table("figures", heads, found.runs.map(({ policy, figures }) => [policy, gantt.duration(figures.mean_turnaround),
    gantt.duration(figures.mean_wait), share(figures.utilization), gantt.duration(figures.makespan), number(figures.rejected)]), []);
  const svg = parsed(found.svg);
  const things = [...svg.querySelectorAll("[data-gpu]")];
  things.forEach((thing, i) => thing.setAttribute("tabindex", i ? -1 : 0));
  element("held").replaceChildren(svg);
  showRun();
}

function showRun() {
  queue.run = queue.found.runs.find((run) => run.policy === element("run").value);
  const { machines, high } = queue.found;
  queue.chart = gantt(element("chart"), { machines, jobs: queue.run.jobs, stays: queue.run.stays, low: 0, high }, { time: paintHeld, job: markJob });
  const time = queue.time > 0 && queue.time < high ? queue.time : high / 3;
  queue.chart.setTime(time);
  paintHeld(time);
}

// ---- the machine at a time ----

function paintHeld(time) {
  const { jobs, stays } = queue.run;
  queue.time = time;
  queue.holder = new Map();
  stays.job.forEach((job, i) => {
    if (stays.start[i] <= time && time < stays.end[i]) for (const gpu of stays.gpus[i]) queue.holder.set(gpu, job);
  });
  for (const thing of element("held").querySelectorAll("[data-gpu]")) paintGpu(thing);
  if (!element("held").querySelector("[data-gpu]")) element("held").querySelectorAll("[data-machine]").forEach(paintTile);
  const running = new Set(queue.holder.values()).size;
  const waiting = jobs.id.filter((_, i) => jobs.submit[i] <= time && (jobs.start[i] ?? Infinity) > time && !jobs.rejected[i]).length;
  element("now").textContent = `At ${gantt.duration(time)}: ${plural(running, "job")} on ${plural(queue.holder.size, "GPU")}, ${waiting} waiting.`;
}

function paintGpu(thing) {
  const job = queue.holder.get(+thing.dataset.gpu);
  const box = thing.querySelector("rect");
  // By the object model, as the page's policy allows no style in its text.
  box.style.fill = job === undefined ? "" : `color-mix(in srgb, ${gantt.shade(job)} 50%, var(--paper))`;
  const words = `GPU ${thing.dataset.gpu}: ${job === undefined ? "free" : `job ${queue.run.jobs.id[job]}`}`;
  thing.setAttribute("aria-label", words);
  thing.querySelector("title").textContent = words;
}

/** Of many GPUs, a tile has the share that is in use. */
function paintTile(tile) {
  const { gpus, name } = queue.found.machines[+tile.dataset.machine];
  const used = gpus.filter((gpu) => queue.holder.has(gpu)).length;
  tile.setAttribute("class", `tile share-${Math.ceil((8 * used) / gpus.length)}`);
  tile.querySelector("title").textContent = `${name}: ${used} of ${gpus.length} GPUs in use`;
}

/** Mark the GPUs of a job, those it has now or else those it had; null marks none. */
function markJob(job) {
  const { stays } = queue.run;
  const now = [...queue.holder].filter(([, one]) => one === job).map(([gpu]) => gpu);
  const ever = stays.gpus.filter((_, i) => stays.job[i] === job).flat();
  const gpus = new Set(now.length ? now : ever);
  for (const thing of element("held").querySelectorAll("[data-gpu]")) thing.classList.toggle("marked", gpus.has(+thing.dataset.gpu));
}

/** A GPU under the pointer, or with the keyboard's focus, marks its job here and in the chart. */
function pointToGpu(event) {
  const thing = event.target.closest?.("[data-gpu]");
  const job = thing ? queue.holder.get(+thing.dataset.gpu) ?? null : null;
  markJob(job);
  queue.chart.mark(job);
}

// ---- the time runs ----

function stop() {
  clearInterval(queue.playing);
  queue.playing = 0;
  element("play").textContent = "Play";
}

function play() {
  if (queue.playing) return stop();
  if (!queue.chart) return undefined;
  element("play").textContent = "Pause";
  const { high } = queue.found;
  let time = queue.time >= high ? 0 : queue.time;
  let last = performance.now();
  const ms = window.matchMedia("(prefers-reduced-motion: reduce)").matches ? STEP_MS : FRAME_MS;
  queue.playing = setInterval(() => {
    const now = performance.now();
    time = Math.min(high, time + ((now - last) / 1000) * (high / PLAY_S));
    last = now;
    queue.chart.setTime(time);
    paintHeld(time);
    if (time >= high) stop();
  }, ms);
  return undefined;
}

function listenToQueue() {
  const tabs = element("tabs");
  tabs.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) { openTab(tab.id.slice(4)); changed(); }
  });
  tabs.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    openTab(view.tab === "queue" ? "place" : "queue");
    element(`tab-${view.tab}`).focus();
    changed();
  });
  element("asked").addEventListener("submit", (event) => event.preventDefault());
  element("asked").addEventListener("change", changed);
  element("run").addEventListener("change", showRun);
  element("play").addEventListener("click", play);
  for (const kind of ["pointerover", "pointerleave", "focusin"]) element("held").addEventListener(kind, pointToGpu);
  element("held").addEventListener("keydown", (event) => {
    const thing = event.target.closest("[data-gpu]");
    if (!thing || !wayOf(event.key)) return;
    event.preventDefault();
    step(thing, wayOf(event.key));
  });
}

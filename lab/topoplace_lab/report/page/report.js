// The page about results: what happened when and where, under one policy at a time.

const ROWS = 50, POINTS = 1200, PLAYED_MS = 20000, STEP_MS = 1000, FRAME_MS = 40;
const chosen = { group: 0, run: 0, time: 0, job: null, search: "", first: 0 };
const shown = { gantt: null, gpus: new Map(), cells: [], held: new Map(), cursors: [], timer: 0, drawChart: null };

const group = () => DATA.groups[chosen.group];
const run = () => group().rows[chosen.run];
const colour = (i) => group().rows[i].colour;
const dash = (i) => DASHES[group().rows[i].dash % DASHES.length];

function quantile(sorted, share) {
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] : null;
}

// ---- over time ----

const spans = new Map();

/** Return when the first job of a group is submitted, and when the last one ends. */
function span() {
  if (!spans.has(chosen.group)) spans.set(chosen.group, spanOf(group().rows));
  return spans.get(chosen.group);
}

function spanOf(rows) {
  let low = Infinity, high = -Infinity;
  for (const one of rows) {
    for (const time of one.jobs.submit) if (time !== null && time < low) low = time;
    for (const time of one.stays.end) if (time !== null && time > high) high = time;
  }
  return low < high ? [low, high] : [0, 1];
}

// The sum of the changes up to each of POINTS times.
function accumulated(changes) {
  const [low, high] = span();
  const sums = new Float64Array(POINTS + 2);
  for (const [time, change] of changes) {
    if (time !== null) sums[Math.min(POINTS, Math.max(0, Math.ceil(((time - low) / (high - low)) * POINTS)))] += change;
  }
  for (let i = 1; i <= POINTS; i++) sums[i] += sums[i - 1];
  return sums.subarray(0, POINTS + 1);
}

function busy(one) {
  const stays = one.stays;
  return accumulated(stays.job.flatMap((_, i) => {
    const gpus = stays.gpus[i].length * (stays.gpu_fraction[i] ?? 1);
    return [[stays.start[i], gpus], [stays.end[i], -gpus]];
  }));
}

function waiting(one) {
  const jobs = one.jobs;
  const ends = new Map();
  one.stays.job.forEach((job, i) => ends.set(job, [...(ends.get(job) ?? []), one.stays.end[i]]));
  // A job may be rejected after it was pre-empted: it waited for its first GPUs nevertheless.
  const came = jobs.submit.map((time, i) => [time, jobs.rejected[i] && !ends.has(i) ? 0 : 1]);
  const held = one.stays.start.map((time) => [time, -1]);
  const back = [];  // a job that is pre-empted waits again
  for (const times of ends.values()) for (const time of times.sort((a, b) => a - b).slice(0, -1)) back.push([time, 1]);
  return accumulated([...came, ...held, ...back]);
}

function fragmented(one) {
  const size = new Map();
  const machineOf = [];
  group().machines.forEach((machine, m) => { size.set(m, machine.gpus.length); machine.gpus.forEach((gpu) => { machineOf[gpu] = m; }); });
  const changes = [];
  const events = [];
  one.stays.job.forEach((_, i) => { events.push([one.stays.start[i], 1, i], [one.stays.end[i], -1, i]); });
  events.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const used = new Map();
  const left = (m) => { const u = used.get(m) ?? 0; return u > 1e-9 ? size.get(m) - u : 0; };
  for (const [time, sign, i] of events) {
    for (const gpu of one.stays.gpus[i]) {
      const m = machineOf[gpu], before = left(m);
      used.set(m, (used.get(m) ?? 0) + sign * (one.stays.gpu_fraction[i] ?? 1));
      changes.push([time, left(m) - before]);
    }
  }
  return accumulated(changes);
}

const SERIES = [["GPUs busy", busy], ["jobs waiting", waiting], ["GPUs free on machines in use", fragmented]];
const kept = new Map();

function seriesOf(k, i) {
  const key = `${chosen.group} ${k} ${i}`;
  if (!kept.has(key)) kept.set(key, SERIES[k][1](group().rows[i]));
  return kept.get(key);
}

function series() {
  const width = chartWidth(), left = 8, height = 110;
  const [low, high] = span();
  shown.cursors = [];
  const charts = SERIES.map(([name], k) => {
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height + 34}`, role: "img", "aria-label": `${name} over time` });
    const lines = group().rows.map((_, i) => seriesOf(k, i));
    let most = 1;
    for (const line of lines) for (const value of line) if (value > most) most = value;
    svg.append(draw("text", { x: left, y: 12 }, `${name} (top: ${number(most)})`));
    svg.append(draw("path", { d: `M${left},18V${height + 18}H${width - 4}`, class: "axis" }));
    lines.forEach((line, i) => {
      let path = "";
      line.forEach((value, p) => {
        if (p && value === line[p - 1] && p < POINTS) return;
        const x = (left + (p / POINTS) * (width - left - 4)).toFixed(1), y = (18 + height * (1 - value / most)).toFixed(1);
        path += path ? `H${x}V${y}` : `M${x},${y}`;
      });
      svg.append(draw("path", { d: path, fill: "none", stroke: colour(i), "stroke-width": i === chosen.run ? 2.4 : 1.2, "stroke-dasharray": dash(i) }));
    });
    const cursor = draw("line", { y1: 18, y2: height + 18, class: "cursor" });
    svg.append(cursor);
    shown.cursors.push([cursor, (time) => left + ((time - low) / (high - low)) * (width - left - 4)]);
    svg.append(draw("text", { x: left, y: height + 31, class: "faint" }, duration(0)));
    svg.append(draw("text", { x: width - 4, y: height + 31, "text-anchor": "end", class: "faint" }, duration(high - low)));
    return svg;
  });
  element("series").replaceChildren(...charts);
  moveCursors();
  element("legend").replaceChildren(...group().rows.map((one, i) => {
    const line = draw("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" });
    line.append(draw("line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke: colour(i), "stroke-width": 3, "stroke-dasharray": dash(i) }));
    return make("span", { class: "key" }, line, one.policy);
  }));
}

function moveCursors() {
  for (const [cursor, x] of shown.cursors) {
    cursor.setAttribute("x1", x(chosen.time));
    cursor.setAttribute("x2", x(chosen.time));
  }
}

// ---- who holds which GPU ----

/** Return the stays at the time that is shown. */
function holders() {
  const stays = run().stays, found = [];
  for (let i = 0; i < stays.job.length; i++) {
    if (stays.start[i] <= chosen.time && chosen.time < stays.end[i]) found.push(i);
  }
  return found;
}

/** Return the job on each GPU in use; -1 for several. */
function jobsOf(current) {
  const held = new Map(), stays = run().stays;
  for (const i of current) for (const gpu of stays.gpus[i]) held.set(gpu, held.has(gpu) ? -1 : stays.job[i]);
  return held;
}

const fillOf = (job) => (job < 0 ? "var(--faint)" : gantt.shade(job));
const holderWords = (job) => (job === undefined ? "free" : job < 0 ? "several jobs" : `job ${run().jobs.id[job]}`);

function ganttChart() {
  const [low, high] = span();
  const data = { machines: group().machines, jobs: run().jobs, stays: run().stays, low, high };
  shown.gantt = gantt(element("gantt"), data, {
    time(time) { chosen.time = time; atTime(); },
    job(job) { chosen.job = job; paint(); },
  });
  shown.gantt.setTime(chosen.time);
}

/** Put the drawing of a group into the page; of more GPUs than it has elements for, a canvas stands there. */
function drawing() {
  const text = group().drawing;
  element("drawing").hidden = text === null;
  element("machines").hidden = text !== null;
  element("drawing").innerHTML = text ?? "";
  shown.gpus = new Map([...element("drawing").querySelectorAll("[data-gpu]")].map((one) => [+one.dataset.gpu, one]));
}

const rectOf = (one) => (one.tagName === "rect" ? one : one.querySelector("rect"));

/** Paint the GPUs by the jobs that hold them, and mark those of the chosen job. */
function paint() {
  shown.held = jobsOf(holders());
  if (group().drawing === null) return paintCells();
  for (const [gpu, one] of shown.gpus) {
    const job = shown.held.get(gpu), rect = rectOf(one);
    // Mixed, so that the GPU's number can be read, and no link shows through.
    rect.style.fill = job === undefined ? "" : `color-mix(in srgb, ${fillOf(job)} var(--held), var(--topoplace-free))`;
    rect.classList.toggle("marked", job !== undefined && job === chosen.job);
  }
}

function markHolder(gpu) {
  const job = shown.held.get(gpu);
  chosen.job = job === undefined || job < 0 ? null : job;
  shown.gantt.mark(chosen.job);
  paint();
}

/** Paint a rectangle for each GPU of a large cluster. */
function paintCells() {
  const canvas = element("machines");
  const width = Math.max(canvas.clientWidth, 280), ratio = window.devicePixelRatio || 1;
  const all = group().machines, widest = Math.max(...all.map((machine) => machine.gpus.length));
  const named = all.length <= 64;
  const cell = all.length * widest > 4096 ? 3 : all.length * widest > 512 ? 6 : 14;
  const name = named ? 110 : 0, gap = cell > 6 ? 8 : 2;
  const perRow = Math.max(1, Math.floor(width / (name + Math.min(widest, 64) * cell + gap)));
  const columns = Math.min(widest, Math.max(1, Math.floor((width - name - gap) / cell)));
  const tall = Math.ceil(widest / columns) * cell + gap;
  const style = getComputedStyle(document.documentElement);
  const racks = new Map();
  for (const machine of all) racks.set(machine.rack, [...(racks.get(machine.rack) ?? []), machine]);
  const titled = racks.size > 1 && racks.size <= 64;
  const places = [];
  shown.cells = [];
  let y = 0;
  for (const [rack, members] of racks) {
    if (titled) { places.push([null, 0, y, rack || "in no domain"]); y += 16; }
    members.forEach((machine, k) => places.push([machine, (k % perRow) * (name + Math.min(widest, columns) * cell + gap), y + Math.floor(k / perRow) * tall]));
    y += Math.ceil(members.length / perRow) * tall;
  }
  canvas.width = width * ratio;
  canvas.height = Math.max(y, 1) * ratio;
  canvas.style.height = `${Math.max(y, 1)}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  Object.assign(context, { strokeStyle: style.getPropertyValue("--mark"), lineWidth: 2 });
  context.font = "11px system-ui, sans-serif";
  for (const [machine, left, top, title] of places) {
    context.fillStyle = style.getPropertyValue("--ink");
    if (!machine) { context.fillText(title, 0, top + 12); continue; }
    if (named) context.fillText(machine.name.slice(0, 16), left, top + cell - 3, name - 6);
    machine.gpus.forEach((gpu, k) => {
      const job = shown.held.get(gpu);
      context.fillStyle = job === undefined ? style.getPropertyValue("--idle") : job < 0 ? style.getPropertyValue("--faint") : gantt.shade(job);
      const at = [left + name + (k % columns) * cell, top + Math.floor(k / columns) * cell, cell - 1, cell - 1];
      context.fillRect(...at);
      if (job !== undefined && job === chosen.job) context.strokeRect(...at);
      shown.cells.push([gpu, at]);
    });
  }
}

/** Return the GPU at a place of the canvas. */
function cellAt(event) {
  const place = element("machines").getBoundingClientRect(), x = event.clientX - place.left, y = event.clientY - place.top;
  return shown.cells.find(([, [left, top, width, height]]) => left <= x && x <= left + width && top <= y && y <= top + height)?.[0];
}

/** Say in words what the drawing shows. */
function sayNow() {
  const current = holders(), stays = run().stays;
  const [low, high] = span();
  const waits = seriesOf(1, chosen.run)[Math.round(((chosen.time - low) / (high - low)) * POINTS)];
  element("now").textContent = `After ${duration(chosen.time - low)}: ${plural(current.length, "job")} on ${plural(shown.held.size, "GPU")} of ${group().gpus.toLocaleString("en")}, ${plural(Math.max(0, Math.round(waits)), "job")} waiting.${[...shown.held.values()].includes(-1) ? " Grey: several jobs share a GPU." : ""}`;
  const jobs = run().jobs;
  const share = (i) => (stays.gpu_fraction[i] < 1 ? ` (${number(stays.gpu_fraction[i])} of each)` : "");
  const rows = current.slice(0, 12).map((i) => [jobs.id[stays.job[i]], listed(stays.gpus[i]) + share(i), ...[chosen.time - stays.start[i], stays.end[i] - chosen.time].map((one) => cell(one, duration(one)))]);
  if (current.length > rows.length) rows.push([`and ${current.length - rows.length} more`, "", "", ""]);
  table(element("running"), ["job", "GPUs", "runs for", "time left"], rows, [0, 1]);
}

// ---- waits, run times ----

function waits() {
  const sizes = [...new Set(group().rows.flatMap((one) => one.jobs.num_gpus))].sort((a, b) => a - b);
  const bins = sizes.length > 12 ? [[1, 1], [2, 2], [3, 4], [5, 8], [9, 16], [17, 64], [65, Infinity]] : sizes.map((size) => [size, size]);
  const rows = group().rows.map((one) => [one.policy, ...bins.map(([from, to]) => {
    const found = one.jobs.wait.filter((wait, i) => wait !== null && one.jobs.num_gpus[i] >= from && one.jobs.num_gpus[i] <= to).sort((a, b) => a - b);
    if (!found.length) return "–";
    const median = quantile(found, 0.5);
    const made = cell(median, duration(median));
    made.append(make("span", { class: "interval" }, `90 %: ${duration(quantile(found, 0.9))}`));
    return made;
  })]);
  const title = ([from, to]) => (from === to ? `${from} GPU${from === 1 ? "" : "s"}` : to === Infinity ? `${from} and more` : `${from}–${to} GPUs`);
  table(element("waits"), ["median", ...bins.map(title)], rows);
}

function slowdowns() {
  const width = chartWidth(), height = 180, left = 30;
  const lines = group().rows.map((one) => one.jobs.slowdown.filter((value) => value !== null && value > 0).sort((a, b) => a - b));
  const most = Math.max(1.05, ...lines.map((line) => quantile(line, 0.995) ?? 1));
  const least = Math.min(1, ...lines.map((line) => line[0] ?? 1));
  const x = (value) => left + Math.min(1, (value - least) / (most - least)) * (width - left - 10);
  const y = (share) => 8 + height * (1 - share);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height + 34}`, role: "img", "aria-label": "Distribution of slowdowns by policy" });
  svg.append(draw("path", { d: `M${left},8V${height + 8}H${width - 10}`, class: "axis" }));
  for (const share of [0, 0.5, 1]) svg.append(draw("text", { x: left - 4, y: y(share) + 4, "text-anchor": "end", class: "faint" }, number(share)));
  lines.forEach((line, i) => {
    if (!line.length) return;
    const steps = Math.min(line.length, 300);
    let path = `M${x(line[0]).toFixed(1)},${y(0)}`;
    for (let k = 1; k <= steps; k++) {
      const at = Math.ceil((k / steps) * line.length);
      path += `H${x(line[at - 1]).toFixed(1)}V${y(at / line.length).toFixed(1)}`;
    }
    svg.append(draw("path", { d: path, fill: "none", stroke: colour(i), "stroke-width": i === chosen.run ? 2.4 : 1.2, "stroke-dasharray": dash(i) }));
  });
  for (let k = 0; k <= 4; k++) {
    const value = least + (k / 4) * (most - least);
    svg.append(draw("text", { x: x(value), y: height + 24, "text-anchor": k === 4 ? "end" : "middle", class: "faint" }, `${number(value)} ×`));
  }
  element("slowdowns").replaceChildren(svg);
}

// ---- decisions ----

function decisions() {
  const jobs = run().jobs, names = Object.keys(jobs.scores);
  const matching = jobs.id.map((_, i) => i).filter((i) => jobs.id[i].includes(chosen.search));
  const time = (i) => jobs.start[i] ?? jobs.submit[i] ?? 0;
  matching.sort((a, b) => time(a) - time(b) || a - b);
  chosen.first = Math.max(0, Math.min(chosen.first, Math.floor((matching.length - 1) / ROWS) * ROWS));
  const gpusOf = new Map();
  run().stays.job.forEach((job, i) => gpusOf.set(job, [...(gpusOf.get(job) ?? []), listed(run().stays.gpus[i])]));
  const [low] = span();
  const rows = matching.slice(chosen.first, chosen.first + ROWS).map((i) => [
    jobs.id[i],
    (gpusOf.get(i) ?? []).join(" → ") || "none",
    jobs.rejected[i] || (jobs.postponed[i] ? `deferred ${plural(jobs.postponed[i], "time")}` : jobs.start[i] === null ? "never started" : "started"),
    cell(jobs.start[i], jobs.start[i] === null ? "–" : duration(jobs.start[i] - low)),
    cell(jobs.wait[i], duration(jobs.wait[i])),
    cell(jobs.run_time[i], duration(jobs.run_time[i])),
    number(jobs.slowdown[i]),
    jobs.sensitive[i] ? "yes" : "no",
    ...names.map((name) => number(jobs.scores[name][i])),
  ]);
  const headings = ["job", "GPUs", "decision", "start", "wait", "run time", "slowdown", "sensitive", ...names.map((name) => name.replaceAll("_", " "))];
  table(element("decisions"), headings, rows, [0, 1, 2]);
  const left = run().left_out ? `; ${plural(run().left_out, "further job")} counted in the key figures alone` : "";
  element("found").textContent = matching.length
    ? `${chosen.first + 1} to ${Math.min(chosen.first + ROWS, matching.length)} of ${plural(matching.length, "job")} under ${run().policy}${left}`
    : `no job of ${run().policy} contains this`;
  element("earlier").disabled = chosen.first === 0;
  element("later").disabled = chosen.first + ROWS >= matching.length;
}

// ---- play ----

function play(isOn) {
  const [low, high] = span();
  clearInterval(shown.timer);
  if (isOn && chosen.time >= high) chosen.time = low;
  const ms = window.matchMedia("(prefers-reduced-motion: reduce)").matches ? STEP_MS : FRAME_MS;
  if (isOn) shown.timer = setInterval(() => advance(ms), ms);
  element("play").textContent = isOn ? "Pause" : "Play";
  element("play").setAttribute("aria-pressed", isOn);
  element("now").setAttribute("aria-live", isOn ? "off" : "polite");
}

const isPlaying = () => element("play").getAttribute("aria-pressed") === "true";

function advance(ms) {
  const [low, high] = span();
  chosen.time = Math.min(high, chosen.time + (ms / PLAYED_MS) * (high - low));
  shown.gantt.setTime(chosen.time);
  atTime();
  if (chosen.time >= high) play(false);
}

// ---- the whole ----

function atTime() { moveCursors(); paint(); sayNow(); }
function ofRun() { chosen.job = null; ganttChart(); series(); atTime(); slowdowns(); decisions(); }
function ofGroup() {
  const where = group(), [low, high] = span();
  play(false);
  chosen.time = (low + high) / 2;
  element("subject").textContent = `${where.name}: ${plural(where.gpus, "GPU")} on ${plural(where.machines.length, "machine")}; ${plural(where.num_jobs, "job")} in a run`;
  options(element("policy"), where.rows.map((one) => one.policy), chosen.run);
  const [made, drawChart] = sectionOf(where);
  element("policies").replaceChildren(made);
  shown.drawChart = drawChart;
  drawChart(chartWidth()); drawing(); waits(); ofRun();
}

function on(id, event, change) {
  element(id).addEventListener(event, (happened) => change(happened.target, happened));
}

options(element("topology"), DATA.groups.map((one) => `${one.name} (${plural(one.gpus, "GPU")}, ${plural(one.num_jobs, "job")})`), 0);
element("choose-topology").hidden = DATA.groups.length < 2;
on("topology", "change", (it) => { Object.assign(chosen, { group: +it.value, run: 0, first: 0 }); ofGroup(); });
on("policy", "change", (it) => { Object.assign(chosen, { run: +it.value, first: 0 }); ofRun(); });
on("play", "click", () => play(!isPlaying()));
on("search", "input", (it) => { Object.assign(chosen, { search: it.value, first: 0 }); decisions(); });
on("earlier", "click", () => { chosen.first -= ROWS; decisions(); });
on("later", "click", () => { chosen.first += ROWS; decisions(); });
on("drawing", "pointerover", (it) => {
  const one = it.closest("[data-gpu]");
  const title = one?.querySelector("title");
  if (title) {
    one.dataset.about ??= title.textContent.replace(/, [^,]*$/, "");
    title.textContent = `${one.dataset.about}, ${holderWords(shown.held.get(+one.dataset.gpu))}`;
  }
  markHolder(one ? +one.dataset.gpu : null);
});
on("drawing", "pointerleave", () => markHolder(null));
on("machines", "pointermove", (it, event) => markHolder(cellAt(event)));
document.addEventListener("keydown", (event) => {
  if (event.key !== " " || event.target.closest("button, input, select, th, summary")) return;
  event.preventDefault();
  play(!isPlaying());
});
window.addEventListener("resize", () => { shown.drawChart(chartWidth()); series(); paint(); slowdowns(); });
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
ofGroup();
document.documentElement.dataset.readyMs = Math.round(performance.now());

"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const ROWS = 50;
const POINTS = 1200;
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];
const chosen = { group: 0, run: 0, measure: 0, time: 0.5, search: "", first: 0 };

const element = (id) => document.getElementById(id);
const group = () => DATA.groups[chosen.group];
const run = () => group().runs[chosen.run];
const colour = (i) => group().runs[i].colour;
const dash = (i) => DASHES[group().runs[i].dash % DASHES.length];

// ---- words and numbers ----

function number(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const digits = Math.abs(value) >= 1000 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en", { maximumFractionDigits: Math.min(digits, 6) });
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (Math.abs(seconds) >= 2 * size) return `${number(seconds / size)} ${unit}`;
  }
  return `${number(seconds)} s`;
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

function listed(gpus) {
  const parts = [];
  const sorted = [...gpus].sort((a, b) => a - b);
  for (let i = 0; i < sorted.length; ) {
    let j = i;
    while (j + 1 < sorted.length && sorted[j + 1] === sorted[j] + 1) j++;
    parts.push(j > i + 1 ? `${sorted[i]}–${sorted[j]}` : sorted.slice(i, j + 1).join(","));
    i = j + 1;
  }
  return parts.join(",");
}

function quantile(sorted, share) {
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] : null;
}

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

function table(into, headings, rows, texts = [0]) {
  const isText = (i) => (texts.includes(i) ? { class: "text" } : {});
  const head = make("tr", {}, ...headings.map((heading, i) => make("th", { scope: "col", tabindex: 0, ...isText(i) }, heading)));
  const body = rows.map((row) =>
    make("tr", {}, ...row.map((cell, i) => (cell instanceof Node ? cell : make("td", isText(i), cell)))));
  into.replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
}

function options(select, names, selected) {
  select.replaceChildren(...names.map((name, i) => {
    const option = make("option", { value: i }, name);
    option.selected = i === selected;
    return option;
  }));
}

const short = (text, pixels) => (text.length * 7 < pixels ? text : `${text.slice(0, Math.floor(pixels / 7) - 2)}…`);
const widthOf = (id) => Math.max(280, Math.min(960, element(id).clientWidth));

// ---- policies side by side ----

// The best figure as it is shown; null if all look alike.
function best(measure) {
  const values = group().runs.map((one) => one.figures[measure.key][0]).filter((value) => value !== null);
  if (new Set(values.map(number)).size < 2) return null;
  return number(measure.higher ? Math.max(...values) : Math.min(...values));
}

function figuresTable() {
  const measures = DATA.measures.filter((one) => group().runs.some((each) => each.figures[one.key][0] !== null));
  const headings = ["policy", ...measures.map((one) => `${one.label} ${one.unit}`.trim())];
  const rows = group().runs.map((one) => [
    one.policy,
    ...measures.map((measure) => {
      const [mean, low, high] = one.figures[measure.key];
      const cell = make("td", number(mean) === best(measure) ? { class: "best" } : {}, number(mean));
      if (low !== null && high > low) cell.append(make("span", { class: "interval" }, `${number(low)} to ${number(high)}`));
      return cell;
    }),
  ]);
  table(element("figures"), headings, rows);
  const most = Math.max(...group().runs.map((one) => one.repetitions));
  element("repetitions").textContent = most > 1
    ? `Means of up to ${most} runs, with 95 % intervals. The sections below show the first run of each policy.`
    : "One run of each policy. Bold is best.";
  element("remarks").textContent = group().remarks.join(" ");
}

function intervals() {
  const measure = DATA.measures[chosen.measure];
  const rows = group().runs.map((one, i) => ({ i, name: one.policy, value: one.figures[measure.key] }));
  const known = rows.filter((row) => row.value[0] !== null);
  const width = widthOf("intervals"), left = Math.min(170, width * 0.4), right = 90, step = 22, height = rows.length * step + 30;
  const most = Math.max(1e-9, ...known.map((row) => row.value[2] ?? row.value[0]));
  const x = (value) => left + (Math.max(0, value) / most) * (width - left - right);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${measure.label} by policy` });
  svg.append(draw("line", { x1: left, x2: left, y1: 4, y2: height - 24, class: "axis" }));
  rows.forEach((row, k) => {
    const y = 16 + k * step;
    svg.append(draw("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, short(row.name, left)));
    const [mean, low, high] = row.value;
    if (mean === null) {
      svg.append(draw("text", { x: left + 6, y: y + 4, class: "faint" }, "no data"));
      return;
    }
    svg.append(draw("line", { x1: left, x2: x(mean), y1: y, y2: y, stroke: colour(row.i), "stroke-width": 2, "stroke-dasharray": dash(row.i) }));
    svg.append(draw("line", { x1: x(low), x2: x(high), y1: y, y2: y, stroke: colour(row.i), "stroke-width": 6, "stroke-opacity": 0.5 }));
    svg.append(draw("circle", { cx: x(mean), cy: y, r: 5, fill: colour(row.i) }));
    svg.append(draw("text", { x: x(high) + 10, y: y + 4, "font-weight": number(mean) === best(measure) ? 700 : 400 }, number(mean)));
  });
  svg.append(draw("text", { x: left, y: height - 4, class: "faint" }, `${measure.label} ${measure.unit}: ${measure.higher ? "more" : "less"} is better`));
  element("intervals").replaceChildren(svg);
}

// ---- over time ----

function span() {
  let low = Infinity, high = -Infinity;
  for (const one of group().runs) {
    for (const time of one.jobs.submit) if (time !== null && time < low) low = time;
    for (const time of one.stays.end) if (time !== null && time > high) high = time;
  }
  return low < high ? [low, high] : [0, 1];
}

const now = () => { const [low, high] = span(); return low + chosen.time * (high - low); };

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
  if (!kept.has(key)) kept.set(key, SERIES[k][1](group().runs[i]));
  return kept.get(key);
}

function series() {
  const width = widthOf("series"), left = 8, height = 110;
  const [low, high] = span();
  const charts = SERIES.map(([name], k) => {
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height + 34}`, role: "img", "aria-label": `${name} over time` });
    const lines = group().runs.map((_, i) => seriesOf(k, i));
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
    const x = left + chosen.time * (width - left - 4);
    svg.append(draw("line", { x1: x, x2: x, y1: 18, y2: height + 18, class: "cursor" }));
    svg.append(draw("text", { x: left, y: height + 31, class: "faint" }, duration(0)));
    svg.append(draw("text", { x: width - 4, y: height + 31, "text-anchor": "end", class: "faint" }, duration(high - low)));
    return svg;
  });
  element("series").replaceChildren(...charts);
  element("legend").replaceChildren(...group().runs.map((one, i) => {
    const line = draw("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" });
    line.append(draw("line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke: colour(i), "stroke-width": 3, "stroke-dasharray": dash(i) }));
    return make("span", { class: "key" }, line, one.policy);
  }));
}

// ---- who holds which GPU ----

function holders() {
  const time = now(), stays = run().stays, found = [];
  for (let i = 0; i < stays.job.length; i++) {
    if (stays.start[i] <= time && time < stays.end[i]) found.push(i);
  }
  return found;
}

const shade = (job) => `hsl(${(job * 137.508) % 360} 62% ${job % 2 ? 46 : 60}%)`;

function machines() {
  const held = new Map();
  const stays = run().stays, current = holders();
  for (const i of current) for (const gpu of stays.gpus[i]) held.set(gpu, held.has(gpu) ? -1 : stays.job[i]);
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
  context.font = "11px system-ui, sans-serif";
  for (const [machine, left, top, title] of places) {
    context.fillStyle = style.getPropertyValue("--ink");
    if (!machine) { context.fillText(title, 0, top + 12); continue; }
    if (named) context.fillText(machine.name.slice(0, 16), left, top + cell - 3, name - 6);
    machine.gpus.forEach((gpu, k) => {
      const job = held.get(gpu);
      context.fillStyle = job === undefined ? style.getPropertyValue("--idle") : job < 0 ? "#444444" : shade(job);
      context.fillRect(left + name + (k % columns) * cell, top + Math.floor(k / columns) * cell, cell - 1, cell - 1);
    });
  }
  const [low] = span();
  const waits = seriesOf(1, chosen.run)[Math.round(chosen.time * POINTS)];
  element("now").textContent = `After ${duration(now() - low)}: ${plural(current.length, "job")} on ${plural(held.size, "GPU")} of ${group().gpus.toLocaleString("en")}, ${plural(Math.max(0, Math.round(waits)), "job")} waiting.${[...held.values()].includes(-1) ? " Dark: several jobs share a GPU." : ""}`;
  const jobs = run().jobs;
  const share = (i) => (stays.gpu_fraction[i] < 1 ? ` (${number(stays.gpu_fraction[i])} of each)` : "");
  const rows = current.slice(0, 12).map((i) => [jobs.id[stays.job[i]], listed(stays.gpus[i]) + share(i), duration(now() - stays.start[i]), duration(stays.end[i] - now())]);
  if (current.length > rows.length) rows.push([`and ${current.length - rows.length} more`, "", "", ""]);
  table(element("running"), ["job", "GPUs", "runs for", "time left"], rows, [0, 1]);
}

// ---- waits, run times ----

function waits() {
  const sizes = [...new Set(group().runs.flatMap((one) => one.jobs.num_gpus))].sort((a, b) => a - b);
  const bins = sizes.length > 12 ? [[1, 1], [2, 2], [3, 4], [5, 8], [9, 16], [17, 64], [65, Infinity]] : sizes.map((size) => [size, size]);
  const rows = group().runs.map((one) => [one.policy, ...bins.map(([from, to]) => {
    const found = one.jobs.wait.filter((wait, i) => wait !== null && one.jobs.num_gpus[i] >= from && one.jobs.num_gpus[i] <= to).sort((a, b) => a - b);
    if (!found.length) return "–";
    return make("td", {}, duration(quantile(found, 0.5)), make("span", { class: "interval" }, `90 %: ${duration(quantile(found, 0.9))}`));
  })]);
  const title = ([from, to]) => (from === to ? `${from} GPU${from === 1 ? "" : "s"}` : to === Infinity ? `${from} and more` : `${from}–${to} GPUs`);
  table(element("waits"), ["median", ...bins.map(title)], rows);
}

function slowdowns() {
  const width = widthOf("slowdowns"), height = 180, left = 30;
  const lines = group().runs.map((one) => one.jobs.slowdown.filter((value) => value !== null && value > 0).sort((a, b) => a - b));
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
    jobs.start[i] === null ? "–" : duration(jobs.start[i] - low),
    duration(jobs.wait[i]),
    duration(jobs.run_time[i]),
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

// ---- the whole ----

function atTime() { series(); machines(); }
function ofRun() { atTime(); slowdowns(); decisions(); }
function all() {
  const where = group();
  element("subject").textContent = `${where.name}: ${plural(where.gpus, "GPU")} on ${plural(where.machines.length, "machine")}; ${plural(where.num_jobs, "job")} in a run`;
  options(element("policy"), where.runs.map((one) => one.policy), chosen.run);
  figuresTable(); intervals(); waits(); ofRun();
}

function on(id, event, change) {
  element(id).addEventListener(event, (happened) => change(happened.target));
}

document.querySelector("h1").textContent = document.title;
options(element("topology"), DATA.groups.map((one) => `${one.name} (${plural(one.gpus, "GPU")}, ${plural(one.num_jobs, "job")})`), 0);
element("choose-topology").hidden = DATA.groups.length < 2;
options(element("measure"), DATA.measures.map((one) => one.label), 0);
on("topology", "change", (it) => { Object.assign(chosen, { group: +it.value, run: 0, first: 0 }); all(); });
on("measure", "change", (it) => { chosen.measure = +it.value; intervals(); });
on("policy", "change", (it) => { Object.assign(chosen, { run: +it.value, first: 0 }); ofRun(); });
on("time", "input", (it) => { chosen.time = +it.value / 1000; atTime(); });
on("search", "input", (it) => { Object.assign(chosen, { search: it.value, first: 0 }); decisions(); });
on("earlier", "click", () => { chosen.first -= ROWS; decisions(); });
on("later", "click", () => { chosen.first += ROWS; decisions(); });
window.addEventListener("resize", () => { intervals(); series(); machines(); slowdowns(); });
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", machines);
all();
document.documentElement.dataset.readyMs = Math.round(performance.now());

"use strict";

/**
 * Draw which job holds which GPU when, and let the reader choose a time and a job.
 *
 * Needs the custom properties --ink, --faint, --line and --paper of CSS, and nothing else. Times are seconds.
 *
 * data: { machines: [{ name, gpus: [number of each GPU] }],
 *         jobs: { id: [text], wait, run_time, slowdown: [value or null; each column may be missing] },
 *         stays: { job: [index of the job], start, end, gpus: [[number]], gpu_fraction: [share of each GPU; may be missing] },
 *         low, high: the times at the two ends }
 * on: { time(t), job(index or null) }: called when the reader chooses a time, or points to a job.
 * Returns { setTime(t), mark(index or null) }, which show a choice made elsewhere and call nothing.
 *
 * Keys: Left and Right (with Shift: small steps), Home and End move the time; Up and Down walk through the jobs that run
 * then; + and - zoom around it, 0 shows all; Escape forgets the job.
 *
 * gantt.duration(seconds), gantt.listed(gpus) and gantt.shade(job) are the words and colours it uses.
 */
const gantt = (() => {
  const TALLEST = 480, MOST_PIXELS = 2000, LANE = 16, AXIS = 20, MOST_GPU_ROWS = 64, MOST_LISTED = 3;
  const LONG = [[86370, "d", 3600, "h", 24], [3599.5, "h", 60, "min", 60], [59.95, "min", 1, "s", 60]];
  const SHORT = [["s", 1], ["ms", 1e-3], ["µs", 1e-6]];
  const TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

  const FORMAT = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });
  const number = (value) => FORMAT.format(Number(value.toPrecision(3)));

  /** Return a time in words, such as "7 h 37 min": as `duration` of tables.py. */
  function duration(seconds) {
    if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
    if (seconds === Infinity) return "for ever";
    if (seconds < 0) return `−${duration(-seconds)}`;
    const long = LONG.find(([least]) => seconds >= least);
    if (long) {
      const [, unit, size, part, parts] = long;
      const all = Math.round(seconds / size), rest = all % parts;
      return `${FORMAT.format(Math.floor(all / parts))} ${unit}${rest ? ` ${rest} ${part}` : ""}`;
    }
    const [unit, size] = SHORT.find(([, one]) => seconds >= one * 0.9995) ?? (seconds ? SHORT[2] : SHORT[0]);
    return `${number(seconds / size)} ${unit}`;
  }

  /** Return numbers in words, those that follow each other as a range. */
  function listed(gpus) {
    const inWords = ([from, count]) => (count > 2 ? `${from}–${from + count - 1}` : count === 2 ? `${from},${from + 1}` : from);
    return runs([...gpus].sort((a, b) => a - b)).map(inWords).join(",");
  }

  /** Return the first and the length of each run of numbers that follow each other. */
  function runs(sorted) {
    const found = [];
    for (const one of sorted) {
      const last = found[found.length - 1];
      if (last && last[0] + last[1] === one) last[1]++;
      else found.push([one, 1]);
    }
    return found;
  }

  const shade = (job) => `hsl(${(job * 137.508) % 360} 62% ${job % 2 ? 46 : 60}%)`;

  function made(name, style, parent) {
    const one = document.createElement(name);
    Object.assign(one.style, style);
    parent.append(one);
    return one;
  }

  /** Return the context of a canvas with a size in pixels of CSS, blank. */
  function blank(canvas, width, height) {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    Object.assign(canvas, { width: Math.max(1, width * ratio), height: Math.max(1, height * ratio) });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    return context;
  }

  /** Return where each GPU is: its lane from the top, its machine, its number there, and the rows with their names. */
  function placed(machines) {
    const order = machines.flatMap((machine) => machine.gpus);
    const lane = new Map(order.map((gpu, i) => [gpu, i]));
    const home = new Map(machines.flatMap((machine, m) => machine.gpus.map((gpu, i) => [gpu, [m, i]])));
    const isByGpu = order.length <= MOST_GPU_ROWS;
    const short = (machine, i) => (machines.length > 1 ? `${machine.name} ${i}` : `GPU ${machine.gpus[i]}`);
    let first = 0;
    const rows = machines.flatMap((machine) => {
      const from = first;
      first += machine.gpus.length;
      if (!isByGpu) return [[machine.name, from, machine.gpus.length]];
      return machine.gpus.map((_, i) => [short(machine, i), from + i, 1]);
    });
    return { lane, home, rows, count: order.length };
  }

  /** Return GPUs in words: of several machines, the numbers on each. */
  function where(gpus, machines, home) {
    if (machines.length === 1) return `GPU${gpus.length === 1 ? "" : "s"} ${listed(gpus)}`;
    const of = new Map();
    for (const gpu of gpus) {
      const [machine, i] = home.get(gpu);
      of.set(machine, [...(of.get(machine) ?? []), i]);
    }
    const parts = [...of].slice(0, MOST_LISTED).map(([machine, each]) => `${machines[machine].name} ${listed(each)}`);
    return parts.join(", ") + (of.size > MOST_LISTED ? ` and ${of.size - MOST_LISTED} more machines` : "");
  }

  function draw(container, data, on) {
    const { stays, jobs, machines, low, high } = data;
    const { lane, home, rows, count } = placed(machines);
    const height = Math.min(LANE, Math.max(TALLEST / count, Math.min(2, MOST_PIXELS / count)));
    const bars = stays.gpus.map((gpus) => runs(gpus.map((gpu) => lane.get(gpu)).sort((a, b) => a - b)));
    const all = [low, Math.max(high, low + 1e-9)];
    const chosen = { time: low, job: null, view: all };
    let width = 0, gutter = 0;

    container.replaceChildren();
    const root = made("div", { position: "relative", maxWidth: "100%" }, container);
    const axis = made("canvas", { display: "block" }, root);
    const box = made("div", { overflow: "hidden auto", maxHeight: `${TALLEST + 20}px`, position: "relative" }, root);
    const back = made("canvas", { display: "block" }, box);
    const front = made("canvas", { display: "block", position: "absolute", left: "0", top: "0", touchAction: "pan-y" }, box);
    const tip = made("div", {
      position: "absolute", pointerEvents: "none", zIndex: 2, padding: ".3rem .5rem", whiteSpace: "pre-line", fontSize: "12px",
      maxWidth: "20rem", background: "var(--paper)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "4px",
    }, root);
    tip.className = "gantt-tip";
    tip.setAttribute("role", "status");
    tip.hidden = true;
    for (const [name, value] of [["role", "slider"], ["tabindex", 0], ["aria-valuemin", low], ["aria-valuemax", high],
      ["aria-label", "Time; bars are jobs on their GPUs. Left and Right move it, Up and Down walk through its jobs, + and − zoom."]]) {
      box.setAttribute(name, value);
    }

    const x = (time) => gutter + ((time - chosen.view[0]) / (chosen.view[1] - chosen.view[0])) * (width - gutter - 6);
    const timeAt = (at) => chosen.view[0] + ((at - gutter) / (width - gutter - 6)) * (chosen.view[1] - chosen.view[0]);
    const within = (time) => Math.min(high, Math.max(low, time));
    const colour = (name) => getComputedStyle(container).getPropertyValue(name);
    const isShown = (i) => stays.end[i] >= chosen.view[0] && stays.start[i] <= chosen.view[1];

    /** Draw the bars of a stay, or an outline around them. */
    function bar(context, i, isOutline) {
      const left = Math.max(gutter, x(stays.start[i])), right = Math.min(width, x(stays.end[i]));
      for (const [first, lanes] of bars[i]) {
        const shape = [left, first * height, Math.max(1, right - left - 0.5), Math.max(0.8, lanes * height - (height > 4 ? 1 : 0))];
        if (isOutline) context.strokeRect(...shape);
        else context.fillRect(...shape);
      }
    }

    function drawBack() {
      const context = blank(back, width, count * height);
      let last = -Infinity;
      for (const [name, first, lanes] of rows) {
        context.fillStyle = colour("--line");
        if (lanes * height >= 4) context.fillRect(gutter, (first + lanes) * height - 0.5, width - gutter, 0.5);
        if (first * height < last + 12 && last >= 0) continue;
        last = first * height;
        context.fillStyle = colour("--faint");
        context.fillText(name, 0, last + Math.max(10, Math.min(lanes * height, LANE) - 4), gutter - 6);
      }
      for (let i = 0; i < bars.length; i++) {
        if (!isShown(i)) continue;
        context.fillStyle = shade(stays.job[i]);
        context.globalAlpha = stays.gpu_fraction && stays.gpu_fraction[i] < 1 ? 0.6 : 1;
        bar(context, i, false);
      }
    }

    function drawAxis() {
      const context = blank(axis, width, AXIS), span = chosen.view[1] - chosen.view[0];
      const least = (span / (width - gutter)) * 90;
      const step = TICKS.find((one) => one >= least) ?? 10 ** Math.ceil(Math.log10(least / 86400)) * 86400;
      const size = least < 0.5 ? 10 ** Math.ceil(Math.log10(least)) : step;
      context.fillStyle = colour("--faint");
      for (let k = Math.ceil((chosen.view[0] - low) / size); low + k * size <= chosen.view[1]; k++) {
        const at = x(low + k * size);
        context.fillRect(at, AXIS - 4, 1, 4);
        if (at + 40 < width) context.fillText(duration(k * size), at + 3, AXIS - 6);
      }
    }

    function drawFront() {
      const context = blank(front, width, count * height);
      context.strokeStyle = colour("--ink");
      context.lineWidth = 2;
      if (chosen.job !== null) {
        stays.job.forEach((job, i) => { if (job === chosen.job && isShown(i)) bar(context, i, true); });
      }
      const at = x(chosen.time);
      context.lineWidth = 1.5;
      context.setLineDash([4, 3]);
      if (at >= gutter) context.strokeRect(at, -9, 0, count * height + 18);
      box.setAttribute("aria-valuenow", chosen.time);
      box.setAttribute("aria-valuetext", duration(chosen.time - low) + (chosen.job === null ? "" : `; ${words(chosen.job)}`));
    }

    function drawAll() {
      if (!box.clientWidth) return;
      width = box.clientWidth;
      gutter = Math.min(width / 4, 8 + 7 * Math.max(...rows.map(([name]) => Math.min(16, name.length))));
      drawBack();
      drawAxis();
      drawFront();
    }

    function words(job) {
      const said = (name, how, text) => (jobs[name]?.[job] === null || jobs[name]?.[job] === undefined ? [] : [`${text} ${how(jobs[name][job])}`]);
      const held = stays.job.flatMap((one, i) => (one === job ? [where(stays.gpus[i], machines, home)] : []));
      return [
        `job ${jobs.id[job]}: ${[...new Set(held)].slice(0, MOST_LISTED).join(" → ") || "no GPU"}`,
        [...said("wait", duration, "waits"), ...said("run_time", duration, "runs")].join(", "),
        ...said("slowdown", (value) => `${number(value)} ×`, "run time over that alone:"),
      ].filter(Boolean).join("\n");
    }

    /** Show what a job is, beside a place in the box; null hides it. */
    function explain(job, left = 0, top = 0) {
      tip.hidden = job === null;
      if (job === null) return;
      tip.textContent = words(job);
      tip.style.left = `${Math.max(0, Math.min(left + 12, width - tip.offsetWidth))}px`;
      tip.style.top = `${top + AXIS + 14 - box.scrollTop}px`;
    }

    /** Show a time, and move what is shown if the time is outside. */
    function showTime(time) {
      chosen.time = within(time);
      const [from, to] = chosen.view, size = to - from;
      if (from <= chosen.time && chosen.time <= to) return drawFront();
      const first = Math.min(Math.max(low, chosen.time - size / 2), high - size);
      chosen.view = [first, first + size];
      drawAll();
    }

    function chooseTime(time) {
      showTime(time);
      on.time?.(chosen.time);
    }

    function chooseJob(job, left, top) {
      explain(job, left, top);
      if (job === chosen.job) return;
      chosen.job = job;
      drawFront();
      on.job?.(job);
    }

    /** Return the stay at a place; thin bars are hit from two pixels away. */
    function hit(left, top) {
      const time = timeAt(left), slack = timeAt(2) - timeAt(0);
      const at = Math.min(count - 1, Math.max(0, Math.floor(top / height)));
      let found = -1, nearest = Infinity;
      for (let i = 0; i < bars.length; i++) {
        const away = Math.max(stays.start[i] - time, time - stays.end[i], 0);
        if (away > slack || away >= nearest || !bars[i].some(([first, lanes]) => first <= at && at < first + lanes)) continue;
        found = i;
        nearest = away;
      }
      return found;
    }

    function point(event) {
      const place = front.getBoundingClientRect(), left = event.clientX - place.left, top = event.clientY - place.top;
      if (event.buttons & 1) chooseTime(timeAt(left));
      const stay = left < gutter ? -1 : hit(left, top);
      chooseJob(stay < 0 ? null : stays.job[stay], left, top);
    }

    /** Walk through the stays at the chosen time, from top to bottom. */
    function walk(step) {
      const current = bars.map((_, i) => i).filter((i) => stays.start[i] <= chosen.time && chosen.time < stays.end[i]);
      current.sort((a, b) => bars[a][0][0] - bars[b][0][0]);
      if (!current.length) return;
      const now = current.findIndex((i) => stays.job[i] === chosen.job);
      const next = current[now < 0 ? (step > 0 ? 0 : current.length - 1) : (now + step + current.length) % current.length];
      const top = bars[next][0][0] * height;
      if (top < box.scrollTop || top > box.scrollTop + TALLEST) box.scrollTop = top - TALLEST / 2;
      chooseJob(stays.job[next], x(chosen.time), top);
    }

    function zoom(factor) {
      const size = Math.min(high - low, (chosen.view[1] - chosen.view[0]) * factor);
      const from = Math.min(Math.max(low, chosen.time - size / 2), high - size);
      chosen.view = factor === Infinity || size <= 0 ? all : [from, from + size];
      drawAll();
    }

    const stepSize = (event) => (chosen.view[1] - chosen.view[0]) * (event.shiftKey ? 0.001 : 0.01);
    const keys = {
      ArrowLeft: (event) => chooseTime(chosen.time - stepSize(event)), ArrowRight: (event) => chooseTime(chosen.time + stepSize(event)),
      Home: () => chooseTime(low), End: () => chooseTime(high), ArrowUp: () => walk(-1), ArrowDown: () => walk(1),
      "+": () => zoom(0.5), "-": () => zoom(2), 0: () => zoom(Infinity), Escape: () => chooseJob(null),
    };
    box.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key](event);
    });
    front.addEventListener("pointerdown", (event) => { box.focus(); point(event); });
    front.addEventListener("pointermove", point);
    front.addEventListener("pointerleave", () => chooseJob(null));
    box.addEventListener("blur", () => explain(null));
    const scheme = window.matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", function redraw() {
      if (box.isConnected) drawAll();
      else scheme.removeEventListener("change", redraw);
    });
    new ResizeObserver(() => { if (box.clientWidth !== width) drawAll(); }).observe(root);
    drawAll();
    return {
      setTime: showTime,
      mark(job) { chosen.job = job; explain(null); drawFront(); },
    };
  }

  return Object.assign(draw, { duration, listed, shade });
})();

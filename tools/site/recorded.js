"use strict";

// Answers as tools/site/recorded.py wrote them into RECORDED, in place of a server's: rings on a few machines.
const source = (() => {
  const NEEDS = "needs a server: run topoplace explore on your computer";

  const about = (state) => RECORDED.machines[state.machine];

  /** Return why a state is not recorded, with the field that is beyond it; null if it is. */
  function missing(state) {
    const wrong = (field, message) => ({ field, message, line: null });
    if (!about(state)) return wrong("machine", `another machine ${NEEDS}`);
    for (const [field, what] of [["pinned", "a pinned GPU"], ["unhealthy", "an unhealthy GPU"], ["links", "a slow link"]]) {
      if (state[field]) return wrong(field, `${what} ${NEEDS}`);
    }
    const last = about(state).about.gpus - 1;
    const outside = [...read(state.busy)].find((gpu) => gpu > last);
    if (outside !== undefined) return wrong("busy", `in use: GPU ${outside}: the GPUs are 0..${last}`);
    if (!about(state).rows[state.gpus.trim()]) {
      return wrong("gpus", `a job of ${state.gpus || "no"} GPUs ${NEEDS}; recorded are ${Object.keys(about(state).rows).join(", ")}`);
    }
    return null;
  }

  /** Return what each policy chooses, fastest first, of equal ones the default, refusals last. */
  function rowsOf(state, size, busy) {
    const { rows, sets, refusals } = about(state);
    const mask = [...busy].reduce((sum, gpu) => sum + 2 ** gpu, 0);
    const rowOf = (number, i) => {
      const row = { policy: RECORDED.policies[i], place: i, note: "", microseconds: null, gpus: null };
      if (number < 0) return { ...row, refusal: refusals[-1 - number] };
      const [gpus, seconds, ring, slowest, marks, words] = sets[number];
      return { ...row, gpus, seconds, ring, slowest, marks, words };
    };
    const key = (row) => [row.gpus ? 0 : 1, row.gpus ? Number((row.seconds ?? Infinity).toFixed(12)) : Infinity, row.policy === RECORDED.default ? 0 : 1, row.place];
    const isBefore = (a, b) => { const i = a.findIndex((value, j) => value !== b[j]); return i < 0 ? 0 : a[i] < b[i] ? -1 : 1; };
    return rows[size][mask].map(rowOf).sort((a, b) => isBefore(key(a), key(b)));
  }

  function drawn(state, busy, row) {
    const { svg, free, chosen, links } = about(state).drawing;
    const task = new Map((row?.gpus ?? []).map((gpu, i) => [gpu, i]));
    const text = svg.replace(/\{(gpu|link) ([^}]+)\}/g, (_, kind, name) => {
      if (kind === "gpu" && task.has(+name)) return chosen[+name].replace(new RegExp(`task ${name}\\b`, "g"), `task ${task.get(+name)}`);
      if (kind === "gpu") return busy.has(+name) ? free[+name].replace('"gpu free"', '"gpu busy"').replace(", free<", ", in use<") : free[+name];
      const classes = row?.marks?.[name];
      return classes ? links[name][1].replace(/class="used[^"]*"/, `class="${classes}"`) : links[name][0];
    });
    return { svg: text, numbers: null, tiles: [], open: null };
  }

  /** Return which jobs still fit after a choice: those that the default policy would place. */
  function left(state, busy, row) {
    const held = new Set([...busy, ...(row.gpus ?? [])]);
    const count = about(state).about.gpus - held.size;
    const found = [];
    for (let size = 1; size <= count; size *= 2) {
      const own = size > 1 && rowsOf(state, size, held).find((one) => one.policy === RECORDED.default);
      found.push({ size, fits: size === 1 || own.gpus !== null, ring: own ? own.ring ?? null : null, machines: 1 });
    }
    return found;
  }

  function command(state, busy) {
    const held = busy.size ? ` --busy ${written(busy)}` : "";
    return `topoplace place ${state.machine} --pattern ring --gpus ${state.gpus} --sensitive${held} --policy ${state.policy}`;
  }

  async function answer(asked) {
    const fields = about(asked)?.presets[asked.preset] ?? {};
    const state = { ...asked, ...fields };
    const problem = missing(state);
    const busy = read(state.busy);
    const rows = problem ? [] : rowsOf(state, state.gpus.trim(), busy);
    const shown = rows.find((row) => row.policy === state.policy) ?? rows[0];
    const drawing = about(state) ? drawn(state, busy, shown) : null;
    const detail = shown && {
      policy: shown.policy, candidates: [], complete: true, rings: shown.words ?? "", left: left(state, busy, shown),
      command: command(state, busy), python: "", environment: "", launch: {}, start: "",
    };
    return { problem, about: about(state)?.about ?? null, drawing, rows, fields, detail: detail ?? null };
  }

  const machines = Object.keys(RECORDED.machines);
  return { isRecorded: true, start: async () => ({ ...RECORDED, machines, patterns: ["ring"], fabrics: [""], own: null }), answer };
})();

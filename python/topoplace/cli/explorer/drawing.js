"use strict";

// The drawing of the machine: what a pointer and keys change in it.

function picture(drawing) {
  const before = document.activeElement?.closest?.("#drawing") ? keyOf(document.activeElement) : null;
  const svg = parsed(drawing.svg);
  const pinned = read(form.pinned.value);
  const things = [...svg.querySelectorAll("[data-gpu],[data-machine]")].filter((one) => one.dataset.gpu || drawing.tiles.length);
  for (const thing of things) {
    thing.setAttribute("tabindex", "-1");
    thing.setAttribute("role", "button");
    if (thing.dataset.gpu && pinned.has(gpuOf(thing, drawing))) thing.classList.add("pinned");
  }
  element("drawing").replaceChildren(svg);
  const again = things.find((one) => keyOf(one) === before) ?? things[0];
  again?.setAttribute("tabindex", "0");
  if (before) again?.focus();
  element("opened").hidden = drawing.open === null;
  const own = drawing.numbers ?? [];
  element("opened").querySelector("span").textContent = `${drawing.open}: GPUs ${own[0]} to ${own[own.length - 1]}, drawn as 0 to ${own.length - 1}`;
}

/** The page's policy allows no style inside a drawing; drawing.css has it, and a saved picture gets it back. */
function parsed(svg) {
  const text = svg.replace(/<style>([^]*?)<\/style>/, (all) => { view.style = all; return ""; });
  return document.adoptNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
}

/** The way of an arrow key, to the right and down; undefined for other keys. */
const wayOf = (key) => ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] })[key];

function keyOf(thing) {
  return thing.dataset.gpu ? `gpu ${thing.dataset.gpu}` : `machine ${thing.dataset.machine}`;
}

function gpuOf(thing, drawing = view.answer.drawing) {
  return drawing.numbers ? drawing.numbers[+thing.dataset.gpu] : +thing.dataset.gpu;
}

/** The GPUs that an element stands for: one, or all of a tile; none for anything else. */
function gpusOf(thing) {
  if (thing?.dataset.gpu) return [gpuOf(thing)];
  const span = thing?.dataset.machine ? view.answer.drawing.tiles[+thing.dataset.machine] : null;
  return span ? Array.from({ length: span[1] - span[0] + 1 }, (_, i) => span[0] + i) : [];
}

/** What the field of links calls an element: 0-3 for two GPUs, 0-nvswitch for a GPU's links into switches; "" for others. */
function linkOf(thing) {
  const match = /^(\d+)-(\d+|nvswitch)\d*$/.exec(thing?.dataset.link ?? "");
  if (!match) return "";
  const called = (end) => (end === "nvswitch" ? end : view.answer.drawing.numbers?.[+end] ?? end);
  return `${called(match[1])}-${called(match[2])}`;
}

const thingAt = (target) => target.closest?.("[data-gpu],[data-machine],[data-link]");

function open(machine) {
  view.open = machine;
  changed();
}

let dragged = null; // while a button is down: whether GPUs become busy, and where it began

function pointerDown(event) {
  const thing = thingAt(event.target);
  if (event.button !== 0 || !thing) return;
  const gpus = gpusOf(thing);
  if (event.shiftKey) {
    if (thing.dataset.gpu) toggle("pinned", gpus);
    return;
  }
  if (event.target.hasPointerCapture(event.pointerId)) event.target.releasePointerCapture(event.pointerId); // of a finger
  const isBusy = gpus.length > 0 && gpus.every((gpu) => read(form.busy.value).has(gpu));
  dragged = { isIn: !isBusy, from: thing, seen: new Set() };
  if (thing.dataset.gpu) paint(thing);
}

function paint(thing) {
  if (dragged.seen.has(thing)) return;
  dragged.seen.add(thing);
  mark("busy", gpusOf(thing), dragged.isIn);
  thing.classList.toggle("busy", dragged.isIn);
  thing.classList.toggle("free", !dragged.isIn);
}

function pointerMove(event) {
  if (!dragged) return;
  const thing = thingAt(document.elementFromPoint(event.clientX, event.clientY) ?? document.body);
  if (!thing || !element("drawing").contains(thing) || gpusOf(thing).length === 0) return;
  if (thing !== dragged.from) paint(dragged.from);
  if (thing !== dragged.from || thing.dataset.gpu) paint(thing);
}

function pointerUp() {
  if (!dragged) return;
  const { from, seen } = dragged;
  dragged = null;
  if (seen.size) changed();
  else if (from.dataset.machine && view.answer.about.machines > 1) open(+from.dataset.machine);
}

function rightClick(event) {
  const thing = thingAt(event.target);
  if (!thing) return;
  event.preventDefault();
  if (linkOf(thing)) nextFault(linkOf(thing));
  else if (thing.dataset.link) problem({ field: "links", message: `${thing.dataset.link}: only links between GPUs, and into the switches of a machine, can be slow or lost here`, line: null });
  else if (gpusOf(thing).length) toggle("unhealthy", gpusOf(thing));
}

/** Arrow keys go to the nearest thing in their direction; space, u and p change it; enter opens a machine. */
function drawingKey(event) {
  const thing = event.target.closest("[data-gpu],[data-machine]");
  if (!thing || event.ctrlKey || event.metaKey || event.altKey) return;
  const fields = { " ": "busy", u: "unhealthy", p: "pinned" };
  const way = wayOf(event.key);
  if (way) step(thing, way);
  else if (fields[event.key]) toggle(fields[event.key], gpusOf(thing));
  else if (event.key === "Enter" && thing.dataset.machine) open(+thing.dataset.machine);
  else if (event.key === "Enter") toggle("busy", gpusOf(thing));
  else if (event.key === "Escape" && view.open >= 0) open(-1);
  else return;
  event.preventDefault();
}

function step(from, [right, down]) {
  const middle = (thing) => {
    const box = thing.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };
  const [x, y] = middle(from);
  let [nearest, least] = [null, Infinity];
  for (const thing of from.closest("svg").querySelectorAll("[tabindex]")) {
    const [ahead, aside] = ((at) => [(at[0] - x) * right + (at[1] - y) * down, Math.abs((at[0] - x) * down) + Math.abs((at[1] - y) * right)])(middle(thing));
    if (ahead > 1 && ahead + 3 * aside < least) [nearest, least] = [thing, ahead + 3 * aside];
  }
  if (!nearest) return;
  from.setAttribute("tabindex", "-1");
  nearest.setAttribute("tabindex", "0");
  nearest.focus();
}

"""The page of `topoplace explore` in a browser, with tools for the scripts of tests."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from browser import dumped

_TOOLS = """
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
async function settled() { do await wait(30); while (isAsking || waiting); }
const gpu = (number) => document.querySelector(`#drawing [data-gpu="${number}"]`);
const at = (thing) => {
  const box = thing.getBoundingClientRect();
  return { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true, cancelable: true };
};
async function press(thing, more = {}) {
  thing.scrollIntoView({ block: "center" });
  thing.dispatchEvent(new PointerEvent("pointerdown", { ...at(thing), button: 0, ...more }));
  window.dispatchEvent(new PointerEvent("pointerup", { button: 0 }));
  await settled();
}
async function menu(thing) { thing.dispatchEvent(new MouseEvent("contextmenu", at(thing))); await settled(); }
async function key(name) {
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  await settled();
}
async function type(name, text) {
  document.querySelector(`[name=${name}]`).value = text;
  document.querySelector(`[name=${name}]`).dispatchEvent(new Event("input", { bubbles: true }));
  await wait(200); await settled();
}
const all = (selector) => [...document.querySelectorAll(selector)];
const classesOf = (one) => [one.dataset.gpu, one.getAttribute("class")];
const states = () => Object.fromEntries(all("#drawing [data-gpu]").map(classesOf));
const chosen = () => Object.entries(states()).filter(([, classes]) => classes.includes("chosen")).map(([one]) => +one);
const shownRows = () => all("#rows .row").map((one) => ({
  policy: one.dataset.policy,
  gpus: one.querySelector(".gpus")?.textContent ?? null,
  selected: one.getAttribute("aria-selected"),
}));
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
addEventListener("unhandledrejection", (event) => errors.push(String(event.reason)));
document.addEventListener("securitypolicyviolation", (event) => errors.push(event.violatedDirective));
addEventListener("load", async () => {
  await settled(); await wait(100); await settled();
  let result;
  try { result = await (async () => { TEST })(); } catch (error) { errors.push(String(error)); }
  document.body.replaceChildren(make("output", { id: "result" }, JSON.stringify({ result: result ?? null, errors })));
});
"""


def with_tools(script: str) -> str:
    """Return what is added to page.js so that the script of a test runs in the page, and its result is shown."""
    return _TOOLS.replace("TEST", script)


def result_of(
    address: str, folder: Path, width: int = 1300, flags: tuple[str, ...] = (), height: int = 1600
) -> Any:
    """Return what the script in a page returns; an error in the page fails the test."""
    text = dumped(address, folder, width, flags, height)
    found = re.search(r'<output id="result">(.*?)</output>', text, re.DOTALL)
    assert found, text[:3000]
    values = json.loads(html.unescape(found[1]))
    assert values["errors"] == []
    return values["result"]

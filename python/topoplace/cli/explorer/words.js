"use strict";

// Numbers and lists of GPUs in words, and elements of the page.
const LISTED_GPUS = 8;

// ---- words and numbers ----

function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 6 });
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "for ever";
  if (seconds === 0) return "not at all";
  return gantt.duration(seconds);
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

/** Numbers in their order as texts, those that follow each other as a range. */
function runs(numbers, to) {
  const parts = [];
  for (let i = 0; i < numbers.length; ) {
    let j = i;
    while (numbers[j + 1] === numbers[j] + 1) j++;
    parts.push(j > i ? `${numbers[i]}${to}${numbers[j]}` : `${numbers[i]}`);
    i = j + 1;
  }
  return parts;
}

/** GPUs in the order of their tasks; of many, those that follow each other as a range. */
function byTask(gpus) {
  if (gpus.length <= LISTED_GPUS) return gpus.join(" ");
  const parts = runs(gpus, "–");
  return parts.slice(0, LISTED_GPUS).join(" ") + (parts.length > LISTED_GPUS ? " …" : "") + ` (${gpus.length})`;
}

// ---- lists of GPUs, such as 0-3,6 ----

function read(text) {
  const found = new Set();
  for (const part of text.split(",")) {
    const match = /^\s*(\d{1,6})(?:\s*-\s*(\d{1,6}))?\s*$/.exec(part);
    if (match) for (let gpu = +match[1]; gpu <= +(match[2] ?? match[1]); gpu++) found.add(gpu);
  }
  return found;
}

function written(gpus) {
  return runs([...gpus].sort((a, b) => a - b), "-").join(",");
}

function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

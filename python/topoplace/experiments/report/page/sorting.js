// Choosing the head of a column, by mouse or keyboard, sorts its table; choosing it again turns the order round.
// Numbers come before texts.

function sortBy(head) {
  const column = head.cellIndex;
  const rows = [...head.closest("table").rows].filter((row) => row.cells[column]?.tagName === "TD");
  const turn = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  const text = (row) => row.cells[column].textContent.trim();
  const number = (row) => Number.parseFloat(text(row).replaceAll(",", ""));
  rows.sort((a, b) => {
    const [first, second] = [number(a), number(b)];
    const isText = Number.isNaN(first) - Number.isNaN(second);
    return isText || turn * (Number.isNaN(first) ? text(a).localeCompare(text(b)) : first - second);
  });
  for (const row of rows) row.parentNode.append(row);
  for (const one of head.parentNode.cells) one.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", turn > 0 ? "ascending" : "descending");
}

document.addEventListener("click", (event) => {
  const head = event.target.closest("th");
  if (head) sortBy(head);
});
document.addEventListener("keydown", (event) => {
  if (event.target.tagName !== "TH" || !["Enter", " "].includes(event.key)) return;
  event.preventDefault();
  sortBy(event.target);
});

"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.querySelectorAll("th[data-column]")];
  const key = (row, column) => {
    const cell = row.cells[column];
    if (column === 0) return cell.textContent;
    return cell.dataset.key === undefined ? Infinity : Number(cell.dataset.key);
  };
  for (const head of heads) {
    const column = Number(head.dataset.column);
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [key(a, column), key(b, column)];
        return x < y ? -1 : x > y ? 1 : 0;
      });
      body.append(...(down ? rows.reverse() : rows));
    });
  }
}
// The contents tell which part is being read.
{
  const links = new Map();
  for (const link of document.querySelectorAll("nav a[href^=\"#\"]")) links.set(link.getAttribute("href").slice(1), link);
  const seen = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) isIntersecting ? seen.add(target) : seen.delete(target);
    const inner = [...seen].sort((a, b) => b.compareDocumentPosition(a) & 2 ? -1 : 1).at(-1);
    for (const link of links.values()) link.removeAttribute("aria-current");
    if (inner) links.get(inner.id).setAttribute("aria-current", "true");
  }, { rootMargin: "-15% 0px -80% 0px" });
  for (const id of links.keys()) watch.observe(document.getElementById(id));
}
// What is folded on a screen is open on paper.
{
  const folded = () => document.querySelectorAll('section[id$="-largest_errors"] details, section[id$="-model_card"] details, section[id$="-plots"] details');
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...folded()].filter((one) => !one.open);
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
  });
}

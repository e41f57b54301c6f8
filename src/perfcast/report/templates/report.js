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

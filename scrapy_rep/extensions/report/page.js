"use strict";
(() => {
  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  const rows = Array.from(body.rows);
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => texts.get(row).includes(word));
      count += row.hidden ? 0 : 1;
    }
    shown.textContent = count + " of " + rows.length;
  };

  const collator = new Intl.Collator("en", { numeric: true });
  const sort = (button) => {
    const heading = button.closest("th");
    const column = heading.cellIndex;
    const number = button.dataset.kind === "number";
    const now = heading.getAttribute("aria-sort");
    // What there is most of comes first.
    const descending = now ? now === "ascending" : number;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const cell = (row) => row.cells[column].textContent;
    const compare = number
      ? (a, b) => Number(cell(a)) - Number(cell(b))
      : (a, b) => collator.compare(cell(a), cell(b));
    rows.sort((a, b) => (descending ? -compare(a, b) : compare(a, b)));
    body.append(...rows);
  };

  search.addEventListener("input", filter);
  for (const button of table.tHead.querySelectorAll("button")) {
    button.addEventListener("click", () => sort(button));
  }
  filter();
})();

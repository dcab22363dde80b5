"use strict";
(() => {
  const collator = new Intl.Collator("en", { numeric: true });

  const searched = (search) => {
    const table = document.getElementById(search.dataset.table);
    const shown = search.closest(".tools").querySelector("[role=status]");
    const rows = Array.from(table.tBodies[0].rows);
    const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const row of rows) {
        row.hidden = !words.every((word) => texts.get(row).includes(word));
        count += row.hidden ? 0 : 1;
        // What was searched for is to be seen.
        for (const details of row.querySelectorAll("details")) details.open = words.length > 0;
      }
      shown.textContent = count + " of " + rows.length;
    };
    search.addEventListener("input", filter);
    filter();
    for (const button of table.tHead.querySelectorAll("button")) {
      button.addEventListener("click", () => sort(button, table, rows));
    }
  };

  const sort = (button, table, rows) => {
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
    table.tBodies[0].append(...rows);
  };

  for (const search of document.querySelectorAll("input[data-table]")) searched(search);

  // On paper nothing can be opened.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
})();

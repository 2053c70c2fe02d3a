"use strict";
(() => {
  const table = document.getElementById("suspects");
  if (!table) return;
  const roles = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
  for (const one of [table, ...table.querySelectorAll("thead, tbody, tr, td, th")]) {
    one.setAttribute("role", roles[one.tagName] || (one.scope === "col" ? "columnheader" : "rowheader"));
  }
  const get = (id) => document.getElementById(id);
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const worst = [...body.rows]; // as they come: the most doubtful first
  const text = worst.map((row) => row.textContent.toLowerCase());
  const words = get("words"), given = get("given"), like = get("like"), more = get("more"), status = get("status");
  const compare = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" }).compare;
  const first = 10, step = 40;
  let order = worst, most = first;

  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  const before = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : compare(String(a), String(b)));

  function matches(row) {
    return (
      text[row.dataset.i].includes(words.value.trim().toLowerCase()) &&
      (given.value === "" || row.dataset.g === given.value) &&
      (like.value === "" || row.dataset.l === like.value)
    );
  }

  function show() {
    let found = 0;
    for (const row of order) row.hidden = !(matches(row) && ++found <= most);
    const shown = Math.min(found, most);
    status.textContent = found === 0 ? "No row matches." : `${shown} of ${found} rows shown` + (found < order.length ? ` (${order.length} in the table).` : ".");
    more.hidden = shown === found;
  }

  heads.forEach((head, column) => {
    head.firstElementChild.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const keys = new Map(worst.map((row) => [row, key(row, column)]));
      order = [...worst].sort((a, b) => (up ? 1 : -1) * before(keys.get(a), keys.get(b)));
      body.append(...order);
      show();
    });
  });
  for (const control of [words, given, like]) {
    control.addEventListener("input", () => {
      most = first;
      show();
    });
  }
  more.addEventListener("click", () => {
    most += step;
    show();
  });
  words.form.addEventListener("submit", (event) => event.preventDefault());

  // A cell that a spreadsheet would take for a formula gets a quote before it; a plain number stays a number.
  function cell(value) {
    let plain = String(value);
    if (/^[=+\-@\t\r\n]/.test(plain) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) plain = "'" + plain;
    return /[",\r\n]/.test(plain) ? '"' + plain.replaceAll('"', '""') + '"' : plain;
  }

  get("download").addEventListener("click", () => {
    const list = JSON.parse(get("review-list").textContent);
    const lines = [[heads[0].textContent, "label", "looks_like", "probability_wrong", "reasons", "right_label"]];
    list.row.forEach((row, i) => {
      const reasons = i < worst.length ? [...worst[i].querySelectorAll("li")].map((one) => one.textContent).join("; ") : "";
      lines.push([row, list.labels[list.given[i]], list.labels[list.like[i]], list.wrong[i], reasons, ""]);
    });
    const csv = "\ufeff" + lines.map((line) => line.map(cell).join(",") + "\r\n").join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
    link.download = "review-list.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });

  words.form.hidden = false; // without a script there is nothing to control, and all rows are shown
  show();
})();

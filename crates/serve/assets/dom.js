// Small helpers for the document. Text from outside gets into it by `textContent` alone.

export const $ = (id) => document.getElementById(id);

// An element with attributes (`class`, `href`, ...), listeners (functions, by their event's name) and children (elements or texts).
export const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
};

// Only what differs is written: a text that is written anew loses the reader's selection, and costs a layout.
export const say = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

// Makes a table's body say `rows` (lists of texts, or elements), and keeps the cells that are there.
export const fill = (body, rows, decorate) => {
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((cells, n) => {
    const row = body.rows[n] ?? body.insertRow();
    while (row.cells.length > cells.length) row.deleteCell(-1);
    cells.forEach((cell, m) => {
      let place = row.cells[m];
      if (!place) {
        place = document.createElement(m === 0 ? "th" : "td");
        if (m === 0) place.scope = "row";
        row.append(place);
      }
      if (cell instanceof Node) {
        if (place.firstChild !== cell) place.replaceChildren(cell);
      } else say(place, cell);
    });
    decorate?.(row, n);
  });
};

// A table in a card that scrolls by itself where it is too wide.
export const table = (caption, heads) => {
  const body = make("tbody");
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const whole = make("table", {}, make("caption", {}, caption), make("thead", {}, head), body);
  const card = make("div", { class: "card", tabindex: "0", role: "region", "aria-label": caption }, whole);
  return { card, body, head };
};

// A table that a narrow window lays out as rows of lines; for a screen reader it remains a table.
export const stacked = ({ card, body, head }) => {
  const whole = card.querySelector("table");
  whole.className = "stack";
  for (const [role, ...of] of [["table", whole], ["rowgroup", head.parentElement, body], ["row", head], ["columnheader", ...head.cells]]) of.forEach((e) => e.setAttribute("role", role));
};
export const stackedRow = (row) => {
  row.setAttribute("role", "row");
  [...row.cells].forEach((cell, n) => cell.setAttribute("role", n ? "cell" : "rowheader"));
};

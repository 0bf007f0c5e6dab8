// Tables of which each row is one item: its name as the header, then cells of texts.

import { element, isLong, keep, setAttribute, setNote, setText } from "./dom.js";
import * as format from "./format.js";

/** A table for `fillTable`, or with its own class for rows that are made elsewhere. */
export function emptyTable(kind = "stacked detailed") {
  const head = element("thead", { role: "rowgroup" }, element("tr", { role: "row" }));
  const body = element("tbody", { role: "rowgroup" });
  return element("table", { class: kind, role: "table" }, element("caption"), head, body);
}

/**
 * Let a table show `items`. A column has a `title`, and `texts(item)`: the value (null: no data) and
 * what stands below it; the first one's are the row's header. `extra()`, where a column has it, gives
 * a view that stands beside the value.
 */
export function fillTable(table, caption, columns, items, keyOf) {
  setText(table.caption, caption);
  keep(table.tHead.rows[0], columns, (column) => column.title, headerView);
  keep(table.tBodies[0], items, keyOf, () => rowView(columns));
}

function headerView({ title, isText }) {
  const kind = isText ? "" : "number";
  return {
    root: element("th", { scope: "col", role: "columnheader", class: kind }, title),
    update() {},
  };
}

function rowView(columns) {
  const cells = columns.map((column, i) => (i ? cellView(column) : nameView(column)));
  const root = element("tr", { role: "row" }, ...cells.map((cell) => cell.root));
  return { root, update: (item) => cells.forEach((cell) => cell.update(item)) };
}

function nameView(column) {
  const [name, below] = [element("span"), element("span", { class: "interval" })];
  const root = element("th", { scope: "row", role: "rowheader" }, name, " ", below);
  return {
    root,
    update(item) {
      const texts = column.texts(item);
      fill(name, below, texts);
      root.classList.toggle("long", isLong(texts[0]));
    },
  };
}

function cellView(column) {
  const { title, isText, extra } = column;
  const kind = isText ? "" : "number";
  const root = element("td", { role: "cell", class: kind, "data-title": title });
  const value = element("span", { class: "value" });
  const words = element("span", { class: "hidden-text" });
  const below = element("span", { class: "interval" });
  const beside = extra?.();
  root.append(value, words, " ", ...(beside ? [beside.root] : []), below);
  return {
    root,
    update(item) {
      const [text, note] = column.texts(item);
      fill(value, below, [text ?? "–", note]);
      setAttribute(value, "aria-hidden", String(text === null));
      setText(words, text === null ? format.NO_DATA : "");
      beside?.update(item);
    },
  };
}

function fill(value, below, [text, note]) {
  setText(value, text);
  setNote(below, note ?? "");
}

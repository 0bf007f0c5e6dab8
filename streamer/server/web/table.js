// The table of segments: a row for each, with its support, and one of all together.

import { byId, element, keep, setAttribute, setNote, setText } from "./dom.js";
import * as format from "./format.js";
import { COLUMNS } from "./columns.js";

export const MAX_ROWS = 200;

/** Show segments; `heading` is of the first column, `caption` says which window it is. */
export function showTable({ segments, whole }, heading, caption) {
  const table = byId("segments");
  const rows = segments.slice(0, MAX_ROWS);
  const columns = COLUMNS.filter((c) =>
    [...rows, whole].some((segment) => segment?.value(c.name, c.labels) !== undefined),
  );
  const hasIntervals = columns.some((c) => rows.some((segment) => segment.interval(c.name, c.labels)));
  setText(table.caption, hasIntervals ? `${caption}, with 95% intervals below the values` : caption);
  const head = [{ title: heading, about: "" }, ...columns];
  keep(table.tHead.rows[0], head, (c) => c.title, headerView);
  const bodyRows = rows.map((segment) => ({ segment, columns }));
  keep(table.tBodies[0], bodyRows, (row) => row.segment.key, () => rowView("row"));
  const footRows = whole && rows.length ? [{ segment: whole, columns }] : [];
  keep(table.tFoot, footRows, () => "all", () => rowView("row whole"));
  const cut = segments.length - rows.length;
  const text = `${format.counted(cut, "segment")} with less support not shown.`;
  setNote(byId("segments-cut"), cut > 0 ? text : "");
}

function headerView(column) {
  const root = element("th", { scope: "col", role: "columnheader" });
  if (column.about) {
    root.className = "number";
    root.append(element("abbr", { title: column.about }, column.title));
    return { root, update() {} };
  }
  return { root, update: ({ title }) => setText(root, title) };
}

function rowView(kind) {
  const root = element("tr", { role: "row", class: kind });
  const title = element("th", { scope: "row", role: "rowheader" });
  root.append(title);
  return {
    root,
    update({ segment, columns }) {
      const cells = [
        { key: "", make: () => ({ root: title, update() {} }) },
        ...columns.map((column) => ({ key: column.title, make: cellView, column, segment })),
      ];
      keep(root, cells, (cell) => cell.key, (cell) => cell.make(cell));
      setText(title, kind === "row" ? segment.title : "all");
    },
  };
}

function cellView({ column }) {
  const root = element("td", { role: "cell", class: "number", "data-title": column.title });
  const value = element("span", { class: "value" });
  const interval = element("span", { class: "interval", hidden: "" });
  const words = element("span", { class: "hidden-text" });
  root.append(value, interval, words);
  return {
    root,
    update({ segment }) {
      const found = segment.value(column.name, column.labels);
      const isThere = found !== undefined;
      setText(value, isThere ? column.write(found) : "–");
      setAttribute(value, "aria-hidden", String(!isThere));
      setText(words, isThere ? "" : format.NO_DATA);
      const ends = isThere ? segment.interval(column.name, column.labels) : null;
      const range = ends ? `${column.write(ends.low)} to ${column.write(ends.high)}` : "";
      setNote(interval, range);
    },
  };
}

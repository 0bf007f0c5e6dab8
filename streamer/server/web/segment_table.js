// The table of segments: a row for each, with its support, and one of all together. On narrow screens
// it has its first columns only, until all are asked for.

import { narrow } from "./collapsible.js";
import { COLUMNS, PREFIX, hrefOf } from "./columns.js";
import { byId, element, keep, setAttribute, setNote, setText } from "./dom.js";
import * as format from "./format.js";

export const MAX_ROWS = 200;

let isAllAsked = false;
let columnCount = 0;
let hasMoreColumns = false;

/**
 * Show segments; `heading` is of the first column, `caption` says which window it is, `sort` by which
 * column ("-ctr_ratio": from the largest on), `choice` what links to metrics carry.
 */
export function showTable({ segments, whole }, heading, { caption, sort, choice }) {
  const table = byId("segments");
  const rows = sorted(segments, sort).slice(0, MAX_ROWS);
  const columns = COLUMNS.filter((c) =>
    [...rows, whole].some((segment) => segment?.value(c.name, c.labels) !== undefined),
  );
  const hasIntervals = columns.some((c) => rows.some((segment) => segment.interval(c.name, c.labels)));
  setText(table.caption, hasIntervals ? `${caption}, with 95% intervals below the values` : caption);
  const head = [{ title: heading, about: "" }, ...columns].map((c) => ({ ...c, sort, choice }));
  keep(table.tHead.rows[0], head, (c) => c.title, headerView);
  const bodyRows = rows.map((segment) => ({ segment, columns }));
  keep(table.tBodies[0], bodyRows, (row) => row.segment.key, () => rowView("row"));
  const footRows = whole && rows.length ? [{ segment: whole, columns }] : [];
  keep(table.tFoot, footRows, () => "all", () => rowView("row whole"));
  suitColumns(columns.length, columns.some((c) => c.isMain) && columns.some((c) => !c.isMain));
  const cut = segments.length - rows.length;
  const text = `${format.counted(cut, "segment")} with less support not shown.`;
  setNote(byId("segments-cut"), cut > 0 ? text : "");
}

/** By a column, where one is named: segments without a value last. */
function sorted(segments, sort = "") {
  const column = COLUMNS.find(({ name }) => name === PREFIX + sort.replace(/^-/, ""));
  if (column === undefined) {
    return segments;
  }
  const sign = sort.startsWith("-") ? -1 : 1;
  const key = (segment) => sign * (segment.value(column.name, column.labels) ?? NaN);
  return segments.toSorted((a, b) => compared(key(a), key(b)));
}

function compared(a, b) {
  if (Number.isNaN(a) || Number.isNaN(b)) {
    return Number.isNaN(a) - Number.isNaN(b);
  }
  return a - b;
}

function classOf({ isMain }) {
  return isMain ? "number" : "number rest";
}

function headerView(column) {
  const root = element("th", { scope: "col", role: "columnheader" });
  if (!column.about) {
    return { root, update: ({ title }) => setText(root, title) };
  }
  root.className = classOf(column);
  const link = element("a", { title: column.about }, column.title);
  const value = column.name.replace(PREFIX, "");
  const mark = element("span", { "aria-hidden": "true" });
  const label = element("span", { class: "hidden-text" }, `Sort by ${column.title}`);
  root.append(link, "\u00a0", element("button", { type: "button", class: "sort", value }, mark, label));
  return {
    root,
    update({ sort, choice }) {
      const order = { [`-${value}`]: "descending", [value]: "ascending" }[sort];
      setAttribute(root, "aria-sort", order ?? "none");
      setText(mark, { descending: "▼", ascending: "▲" }[order] ?? "↕");
      setAttribute(link, "href", hrefOf(column.name, column.labels, choice));
    },
  };
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
      setAttribute(title, "title", segment.title);
    },
  };
}

function cellView({ column }) {
  const root = element("td", { role: "cell", class: classOf(column), "data-title": column.title });
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

/** Show the first ones of so many columns, or all; `hasMore`: whether there are others. */
function suitColumns(columns, hasMore) {
  [columnCount, hasMoreColumns] = [columns, hasMore];
  suit();
}

function suit() {
  byId("columns").hidden = !narrow.matches || !hasMoreColumns;
  const isAll = isAllAsked || byId("columns").hidden;
  byId("segments").className = isAll ? "stacked segments" : "few segments";
  setAttribute(byId("columns"), "aria-expanded", String(isAllAsked));
  setText(byId("columns"), isAllAsked ? "Fewer metrics" : `All ${columnCount} metrics`);
}

byId("columns").addEventListener("click", () => {
  isAllAsked = !isAllAsked;
  suit();
});
narrow.addEventListener("change", suit);

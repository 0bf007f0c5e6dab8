// The table of segments: a row for each of the first ones, with its support, and one of all together.
// A search and two buttons lead to the others. On narrow screens it has its first columns only, until
// all are asked for.

import { narrow } from "./collapsible.js";
import { COLUMNS, PREFIX, hrefOf } from "./columns.js";
import { CTR } from "./comparisons.js";
import { byId, element, isLong, keep, setAttribute, setNote, setText, shape } from "./dom.js";
import { csvButton } from "./download.js";
import * as format from "./format.js";

export const MAX_ROWS = 200;
const STEPS = [10, 25, MAX_ROWS];
const [BAR_WIDTH, BAR_HEIGHT] = [80, 12];

let isAllAsked = false;
let columnCount = 0;
let hasMoreColumns = false;
let rowsShown = STEPS[0];
let last = null;

/**
 * Show segments; `heading` is of the first column, `caption` says which window it is, `sort` by which
 * column ("-ctr_ratio": from the largest on), `choice` what links to metrics carry, `compared` what
 * click-through rates are compared with, if anything.
 */
export function showTable(found, heading, options) {
  last = [found, heading, options];
  draw();
}

function draw() {
  const [{ segments, whole }, heading, { caption, sort, choice, compared }] = last;
  const table = byId("segments");
  const search = byId("segments-search").value.trim().toLowerCase();
  const offered = columnsWith(compared);
  const matching = segments.filter(({ title }) => title.toLowerCase().includes(search));
  const rows = sorted(matching, offered, sort).slice(0, rowsShown);
  const columns = offered.filter((c) => [...rows, whole].some((segment) => segment && valueOf(c, segment) !== undefined));
  const hasIntervals = columns.some((c) => rows.some((segment) => segment.interval(c.name, c.labels)));
  setText(table.caption, hasIntervals ? `${caption}, with 95% intervals below the values` : caption);
  const head = [{ title: heading, about: "" }, ...columns].map((c) => ({ ...c, sort, choice }));
  keep(table.tHead.rows[0], head, (c) => c.title, headerView);
  const bodyRows = rows.map((segment) => ({ segment, columns }));
  keep(table.tBodies[0], bodyRows, (row) => row.segment.key, () => rowView("row"));
  const footRows = whole && rows.length ? [{ segment: whole, columns }] : [];
  keep(table.tFoot, footRows, () => "all", () => rowView("row whole"));
  suitColumns(columns.length, columns.some((c) => c.isMain) && columns.some((c) => !c.isMain));
  showCut(rows.length, matching.length, segments.length, search);
}

/** How many rows are shown, in which order, and the buttons for more. */
function showCut(shown, matching, all, search) {
  byId("segments-find").hidden = all <= STEPS[0];
  const of = search ? `${format.count(matching)} that match` : format.count(matching);
  setNote(byId("segments-cut"), shown < matching || search ? `${format.count(shown)} of ${of} are shown.` : "");
  const next = STEPS.find((step) => step > rowsShown);
  byId("segments-more").hidden = shown >= matching || next === undefined;
  setText(byId("segments-more"), next === STEPS[1] && matching > next ? `Show ${next}` : "Show all");
}

/** The columns, those of a comparison beside the click-through rate. */
function columnsWith(compared) {
  if (!compared) {
    return COLUMNS;
  }
  const about = "of the click-through rate";
  const then = { title: compared.title, name: "then", about, labels: {}, write: format.percent };
  const change = { title: "Change", name: "change", about, labels: {}, write: format.change, isMain: true };
  const own = [
    { ...then, read: (segment) => compared.of(segment)?.then },
    { ...change, read: (segment) => compared.of(segment)?.change, status: (segment) => compared.of(segment)?.status },
  ];
  return COLUMNS.flatMap((column) => (column === CTR ? [column, ...own] : [column]));
}

function valueOf(column, segment) {
  return column.read ? column.read(segment) : segment.value(column.name, column.labels);
}

/** By a column, where one is named: segments without a value last. */
function sorted(segments, columns, sort = "") {
  const name = sort.replace(/^-/, "");
  const column = columns.find((each) => each.name.replace(PREFIX, "") === name);
  if (column === undefined) {
    return segments;
  }
  const sign = sort.startsWith("-") ? -1 : 1;
  const key = (segment) => sign * (valueOf(column, segment) ?? NaN);
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
  const link = element(column.read ? "span" : "a", { title: column.about }, column.title);
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
      if (!column.read) {
        setAttribute(link, "href", hrefOf(column.name, column.labels, choice));
      }
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
      title.classList.toggle("long", isLong(segment.title));
    },
  };
}

function cellView({ column: { name, ...first } }) {
  const root = element("td", { role: "cell", class: classOf(first), "data-title": first.title });
  const value = element("span", { class: "value" });
  const interval = element("span", { class: "interval", hidden: "" });
  const words = element("span", { class: "hidden-text" });
  const bar = name === "change" ? changeBar() : null;
  root.append(...[value, bar?.root, interval, words].filter(Boolean));
  return {
    root,
    update({ segment, column }) {
      const found = valueOf(column, segment);
      const isImpossible = column.parts && found > 1;
      const isThere = found !== undefined && !isImpossible;
      setText(value, isThere ? column.write(found) : "–");
      setAttribute(value, "aria-hidden", String(!isThere));
      setText(words, isThere ? "" : isImpossible ? `more ${column.parts}` : format.NO_DATA);
      const ends = isThere && !column.read ? segment.interval(column.name, column.labels) : null;
      const [low, high] = ends ? [ends.low, ends.high].map((end) => column.write(end).replace(" ", "\u00a0")) : [];
      setNote(interval, ends ? `${low} to\u00a0${high}` : "");
      bar?.update(found, column.status?.(segment));
    },
  };
}

/** A change as a bar from the middle to one side, coloured where an alert fires. */
function changeBar() {
  const rect = shape("rect", { y: 1, height: BAR_HEIGHT - 2 });
  const zero = shape("line", { class: "zero", x1: BAR_WIDTH / 2, x2: BAR_WIDTH / 2, y1: 0, y2: BAR_HEIGHT });
  const box = { viewBox: `0 0 ${BAR_WIDTH} ${BAR_HEIGHT}`, width: BAR_WIDTH, height: BAR_HEIGHT };
  const root = shape("svg", { class: "change", "aria-hidden": "true", ...box }, rect, zero);
  return {
    root,
    update(change, status) {
      const long = (Math.min(1, Math.abs(change ?? 0)) * BAR_WIDTH) / 2;
      setAttribute(rect, "x", String(change < 0 ? BAR_WIDTH / 2 - long : BAR_WIDTH / 2));
      setAttribute(rect, "width", String(long));
      setAttribute(rect, "data-kind", status === "dropped" || status === "risen" ? "bad" : "open");
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
byId("segments-search").addEventListener("input", draw);
byId("segments-more").addEventListener("click", () => {
  rowsShown = STEPS.find((step) => step > rowsShown) ?? MAX_ROWS;
  draw();
});
byId("segments-tools").append(csvButton(byId("segments"), "segments"));
narrow.addEventListener("change", suit);

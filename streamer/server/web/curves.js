// The curve that belongs to a metric: of click rates by position, of scores by what happened.

import { get } from "./api.js";
import { CALIBRATION, binsOf, curve, rowView as binView } from "./calibration.js";
import { PREFIX } from "./columns.js";
import { byId, element, keep, setAttribute, setText, shape } from "./dom.js";
import * as format from "./format.js";
import { emptyTable, fillTable } from "./item_table.js";
import { queryOf, segmentsOf } from "./segments.js";

/** The metrics that the curve of positions is drawn from. */
export const POSITIONS = [`${PREFIX}ctr_position_ratio`, `${PREFIX}window_position_impressions`];
const BY_POSITION = new Set(["ctr_ratio", "ctr_position_ratio", "coec_ratio"].map((name) => PREFIX + name));
const OF_SCORES = ["calibration", "scores"];
const [WIDTH, HEIGHT] = [160, 12];

/** Show the curve of a metric in a window and of a filter below #metric-curve; nothing where it has none. */
export async function showCurve(about, window, dimensions, where, signal) {
  const root = byId("metric-curve");
  const names = namesOf(about);
  const query = new URLSearchParams(queryOf(window, [], dimensions, where));
  names.forEach((name) => query.append("name", name));
  const { readings } = names.length ? await get(`api/readings?${query}`, signal) : { readings: [] };
  root.hidden = !readings.length;
  if (!readings.length) {
    return;
  }
  if (names === POSITIONS) {
    showPositions(root, positionsOf(readings), window);
  } else {
    showBins(root, readings, dimensions, window);
  }
}

function namesOf({ name, family }) {
  if (BY_POSITION.has(name)) {
    return POSITIONS;
  }
  return OF_SCORES.includes(family) ? CALIBRATION : [];
}

/** A row for each position, the first one first. */
export function positionsOf(readings) {
  const of = (name) => new Map(readings.filter((r) => r.name === name).map((r) => [r.labels.position, r.value]));
  const [rates, shown] = POSITIONS.map(of);
  const most = Math.max(...rates.values(), 1e-9);
  const rows = [...rates].map(([position, rate]) => ({ position, rate, shown: shown.get(position) ?? 0, most }));
  return rows.sort((a, b) => Number(a.position) - Number(b.position));
}

/** Show them below an element. */
export function showPositions(root, rows, window) {
  const table = tableOf(root, "stacked detailed");
  const caption = `Click-through rate by position, ${format.lastWithTimes(window)}`;
  fillTable(table, caption, COLUMNS, rows, (row) => row.position);
}

const COLUMNS = [
  { title: "Position", isText: true, texts: (row) => [row.position] },
  { title: "Impressions", texts: (row) => [format.count(row.shown)] },
  { title: "Click-through rate", texts: (row) => [format.percent(row.rate)], extra: () => shareBar((row) => row.rate / row.most) },
];

/** A bar as long as a share; the number beside it says the same. `shareOf` is of a row. */
export function shareBar(shareOf) {
  const rect = shape("rect", { x: 0, y: 1, height: HEIGHT - 2 });
  const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT };
  const root = shape("svg", { class: "part", "aria-hidden": "true", ...box }, rect);
  return { root, update: (row) => setAttribute(rect, "width", String(shareOf(row) * WIDTH)) };
}

function showBins(root, readings, dimensions, window) {
  const [segment] = segmentsOf(readings, [], dimensions).segments;
  const bins = segment ? binsOf(segment) : [];
  root.hidden = !bins.length;
  const table = tableOf(root, "plain");
  const head = ["Score", "Predicted", "Observed", "Impressions"];
  keep(table.tHead.rows[0], head, (text) => text, headerView);
  setText(table.caption, `Predicted and observed clicks by score, ${format.lastWithTimes(window)}`);
  keep(table.tBodies[0], bins, ({ bin }) => bin, binView);
  if (bins.length) {
    root.querySelector(".chart").replaceChildren(curve(bins));
  }
}

function headerView(text) {
  const kind = text === "Score" ? "" : "number";
  return { root: element("th", { scope: "col", class: kind }, text), update() {} };
}

/** The table of the curve, made once, below a place for its drawing. */
function tableOf(root, kind) {
  if (!root.querySelector("table")) {
    root.append(element("div", { class: "chart" }), emptyTable(kind));
  }
  return root.querySelector("table");
}

// The first metrics of everything that is chosen, together: value, what it was, what it is of, and its
// past as a line.

import { find, get } from "./api.js";
import { COLUMNS, PREFIX, hrefOf } from "./columns.js";
import { before } from "./comparisons.js";
import { byId, element, keep, setAttribute, setNote, setText, shape } from "./dom.js";
import * as format from "./format.js";
import { ROLLUP, queryOf, segmentsOf } from "./segments.js";

const [WIDTH, HEIGHT, POINTS] = [160, 36, 30];
const EVERY_MS = 30_000;
const NAMES = ["ctr_ratio", "cvr_ratio", "dwell_mean_seconds", "ndcg_ratio", "window_users"];
const TILES = NAMES.map((name) => COLUMNS.find((column) => column.name === PREFIX + name));
const RATIO = `${PREFIX}ratio`;
const keyOf = ({ name, labels }) => labels.ratio ?? name;
const count = (segment, name) => format.count(segment.value(`${PREFIX}window_${name}`) ?? 0);
const BASES = {
  ctr_ratio: (s) => `${count(s, "clicks")} of ${count(s, "impressions")} impressions`,
  cvr_ratio: (s) => `${count(s, "conversions")} of ${count(s, "clicks")} clicks`,
};

/** The tiles; `onChoose` gets the name of a metric whose course is wanted. */
export class Tiles {
  #courses = new Map();
  #key = "";
  #dueMs = 0;
  #ratios = null;
  #onChoose;

  constructor(onChoose) {
    this.#onChoose = onChoose;
  }

  async refresh(choice, chosenName, alerts, signal) {
    const { window, dimensions, where, windows } = choice;
    const longest = windows.at(-1);
    const now = await wholeOf(window, choice, signal);
    if (now === null) {
      byId("tiles").hidden = true;
      return;
    }
    const tiles = [...TILES, ...(await this.#readRatios(signal))];
    await this.#readCourses(tiles, longest, where, signal);
    const then = new Map();
    for (const column of tiles.filter(({ isOfUsers }) => !isOfUsers)) {
      then.set(keyOf(column), await before({ name: column.name, window, ...where, ...column.labels }, signal));
    }
    const isAll = !Object.keys(where).length;
    const items = tiles.filter((column) => now.value(column.name, column.labels) !== undefined).map((column) => ({
      column,
      ...{ now, window, dimensions, then: then.get(keyOf(column)) },
      entry: isAll ? (alerts.find((each) => isWatched(each, column, window)) ?? null) : null,
      course: this.#courses.get(keyOf(column)) ?? null,
      isChosen: column.name === chosenName,
      choose: this.#onChoose,
    }));
    keep(byId("tiles"), items, ({ column }) => keyOf(column), tileView);
    byId("tiles").hidden = !items.length;
  }

  /** A column for each of `[[ratios]]` that has a denominator. */
  async #readRatios(signal) {
    if (this.#ratios === null) {
      const { metrics } = await get("api/metrics", signal);
      const ratios = metrics.find(({ name }) => name === RATIO)?.ratios ?? {};
      this.#ratios = Object.entries(ratios).map(([ratio, { title, form, definition }]) => ({
        ...{ title, name: RATIO, labels: { ratio }, write: format.writer(form), about: definition },
      }));
    }
    return this.#ratios;
  }

  /** The past of each metric, in the longest window. */
  async #readCourses(tiles, longest, where, signal) {
    const key = JSON.stringify([longest, where, tiles.length]);
    const startedMs = performance.now();
    if (key === this.#key && startedMs < this.#dueMs) {
      return;
    }
    for (const column of tiles.filter(({ isOfUsers }) => !isOfUsers)) {
      const query = new URLSearchParams({ name: column.name, points: POINTS, window: longest, ...where, ...column.labels });
      const { lines } = await find(`api/history?${query}`, signal);
      this.#courses.set(keyOf(column), lines[0]?.values ?? null);
    }
    [this.#key, this.#dueMs] = [key, startedMs + EVERY_MS];
  }
}

/** Everything that is chosen, together; null where nothing was counted. */
async function wholeOf(window, { dimensions, where }, signal) {
  const query = new URLSearchParams(queryOf(window, [], dimensions, where));
  for (const name of new Set([...COLUMNS.map((column) => column.name), RATIO])) {
    query.append("name", name);
  }
  const { readings = [] } = await find(`api/readings?${query}`, signal);
  return segmentsOf(readings, [], dimensions).segments[0] ?? null;
}

function isWatched({ metric, window, segment, checks }, column, wanted) {
  const isWhole = Object.values(segment).every((value) => value === ROLLUP);
  const { ratio } = column.labels;
  return PREFIX + metric === column.name + (ratio === undefined ? "" : `@${ratio}`) && window === wanted && isWhole && checks.metric.baseline !== null;
}

function tileView({ column, choose }) {
  const spark = shape("polyline", { class: "spark" });
  const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", height: HEIGHT };
  const svg = shape("svg", { "aria-hidden": "true", ...box }, spark);
  const [value, was, basis] = ["v", "d", "d"].map((kind) => element("span", { class: kind }));
  const root = element("button", { type: "button", class: "tile" }, element("span", { class: "k" }, column.title), value, was, svg, basis);
  const name = column.name.replace(PREFIX, "");
  root.addEventListener("click", () => (column.labels.ratio ? location.assign(hrefOf(name, column.labels)) : choose(name)));
  root.disabled = Boolean(column.isOfUsers);
  return {
    root,
    update(item) {
      setAttribute(root, "aria-pressed", String(item.isChosen));
      setText(value, column.write(item.now.value(column.name, column.labels)));
      setNote(was, wasOf(item));
      setAttribute(was, "data-kind", item.entry?.checks.metric.status === "dropped" ? "bad" : "open");
      setText(basis, BASES[name]?.(item.now) ?? (column.labels.ratio ? column.about : column.isOfUsers ? `distinct in ${item.window}` : `mean of ${format.last(item.window)}`));
      setAttribute(spark, "points", pointsOf(item.course));
      svg.toggleAttribute("hidden", item.course === null);
    },
  };
}

/** "▼ −29%, usually 0.703%" of an alert, else "+7.0%, was 11.7% 24h before". */
function wasOf({ column, now, then, entry }) {
  const value = now.value(column.name, column.labels);
  if (entry !== null) {
    const { baseline, status } = entry.checks.metric;
    const sign = status === "dropped" || status === "risen" ? `${status === "dropped" ? "▼" : "▲"} ` : "";
    return baseline ? `${sign}${format.change(value / baseline - 1)}, usually ${column.write(baseline)}` : "";
  }
  const past = then?.lines[0]?.values[0];
  return past ? `${format.change(value / past - 1)}, was ${column.write(past)} ${then.title}` : "";
}

/** A line from 0 on; gaps are bridged. */
function pointsOf(course) {
  const values = (course ?? []).map((value, i) => ({ value, i })).filter(({ value }) => value !== null);
  const most = Math.max(...values.map(({ value }) => value), 0) || 1;
  const step = WIDTH / Math.max(1, (course?.length ?? 1) - 1);
  return values.map(({ value, i }) => `${(i * step).toFixed(1)},${(HEIGHT - 2 - (value / most) * (HEIGHT - 4)).toFixed(1)}`).join(" ");
}

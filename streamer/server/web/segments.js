// Readings by segment: what the table and the list of more metrics show.

import { COLUMNS } from "./columns.js";

export const ROLLUP = "all";

/** The query for a window, split by some dimensions, and of the others of one value each: that of
 * `where`, else all. */
export function queryOf(window, split, dimensions, where = {}) {
  const query = new URLSearchParams({ window });
  for (const dimension of dimensions) {
    if (!split.includes(dimension)) {
      query.set(dimension, where[dimension] ?? ROLLUP);
    }
  }
  return query.toString();
}

/** What the ends of a metric's 95% interval are called: `_lower` and `_upper` stand before the unit. */
export function endsOf(name) {
  const [, base, unit] = /^(.*?)(_ratio|_seconds)?$/s.exec(name);
  return ["_lower", "_upper"].map((end) => base + end + (unit ?? ""));
}

/** The values of one segment. `labels` are those of its dimensions. */
export class Segment {
  #values = new Map();

  constructor(key, labels) {
    this.key = key;
    this.labels = labels;
    this.readings = [];
  }

  add(name, labels, value) {
    const key = keyOf(name, labels);
    this.#values.set(key, value);
    this.readings.push({ key, name, labels, value });
  }

  /** The value of a name with exactly these labels besides window and dimensions. */
  value(name, labels = {}) {
    return this.#values.get(keyOf(name, labels));
  }

  /** The ends of the 95% interval of a value, where there is one. */
  interval(name, labels = {}) {
    const [low, high] = endsOf(name).map((end) => this.value(end, labels));
    return low === undefined || high === undefined ? null : { low, high };
  }

  /** What its metrics rest on. */
  get support() {
    return this.value(COLUMNS[0].name) ?? 0;
  }

  /** Its values of the split: "A", "A, home". */
  get title() {
    return Object.values(this.labels).join(", ") || "all together";
  }
}

/** Segments in which every dimension of the split has a value, by support; and their rollup. */
export function segmentsOf(readings, split, dimensions) {
  const found = new Map();
  const besides = new Set(["window", ...dimensions]);
  for (const { name, labels, value } of readings) {
    if (split.some((dimension) => labels[dimension] === undefined)) {
      continue; // of no segment: a metric that dimensions do not split
    }
    const own = Object.fromEntries(split.map((dimension) => [dimension, labels[dimension]]));
    const key = JSON.stringify(Object.values(own));
    if (!found.has(key)) {
      found.set(key, new Segment(key, own));
    }
    const others = Object.entries(labels).filter(([label]) => !besides.has(label));
    found.get(key).add(name, Object.fromEntries(others), value);
  }
  const all = [...found.values()];
  const values = (segment) => Object.values(segment.labels);
  const whole = all.find((s) => split.length && values(s).every((v) => v === ROLLUP)) ?? null;
  const shown = all.filter((s) => !values(s).includes(ROLLUP));
  shown.sort((a, b) => b.support - a.support || (a.title < b.title ? -1 : 1));
  return { segments: shown, whole };
}

function keyOf(name, labels) {
  return JSON.stringify([name, ...Object.entries(labels).sort()]);
}

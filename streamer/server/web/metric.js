// A metric by itself: what it means, its course, its values by each dimension, the alerts on it.

import { nameOf, readAlerts } from "./alert_history.js";
import { get } from "./api.js";
import { PREFIX } from "./columns.js";
import { showCurve } from "./curves.js";
import { byId, element, keep, setFacts, setNote, setOptions, setText, textView } from "./dom.js";
import { Filters } from "./filters.js";
import { setTitle } from "./firing.js";
import * as format from "./format.js";
import { emptyTable, fillTable } from "./item_table.js";
import { CLICKS, Course, isOf, middling, pointsFor } from "./metric_history.js";
import { ROLLUP, endsOf } from "./segments.js";
import { chosen, remember } from "./url_state.js";

const EVERY_MS = 15_000;
const NOTHING = "-";
const FIRST = { maturity: "provisional", over: "all", position: "1" };

/** The section of one metric, which the address names. `onChange`: another choice was made. */
export class MetricPage {
  #wanted = chosen();
  #course = new Course(byId("metric-course"), (range) => this.#choose(range));
  #filters;
  #about = null;
  #dueMs = 0;
  #onChange;

  constructor(onChange) {
    this.#onChange = onChange;
    const choose = (part) => this.#choose(part);
    this.#filters = new Filters(byId("metric-filters"), choose);
    byId("metric-window").addEventListener("change", (event) => choose({ window: event.target.value }));
    byId("metric-split").addEventListener("change", (event) => choose({ split: event.target.value }));
    byId("metric-labels").addEventListener("change", ({ target }) => choose({ [target.name]: target.value }));
  }

  #choose(part) {
    Object.assign(this.#wanted, part);
    remember(part);
    this.#dueMs = 0;
    byId("metric").classList.add("old");
    this.#onChange();
  }

  async refresh({ dimensions, windows }, signal) {
    const startedMs = performance.now();
    if (startedMs < this.#dueMs) {
      return;
    }
    const about = await this.#meaning(signal);
    byId("metric-panel").hidden = about === null;
    if (about === null) {
      return;
    }
    const window = windows.includes(this.#wanted.window) ? this.#wanted.window : windows.at(-1);
    const split = dimensions.includes(this.#wanted.split) ? this.#wanted.split : undefined;
    setNote(byId("metric-missing"), this.#missing(windows, dimensions));
    const names = [about.name, ...endsOf(about.name), CLICKS];
    const asks = names.map((name) => ["name", name]);
    const query = new URLSearchParams([["window", window], ...asks]);
    const { readings } = await get(`api/readings?${query}`, signal);
    await this.#filters.learn(window, dimensions, signal);
    const labels = this.#showLabels(readings, about);
    this.#showMeaning(about, labels);
    const where = this.#showControls(windows, window, dimensions, split);
    this.#showSplits(readings, dimensions, about, labels, window);
    await showCurve(about, window, dimensions, where, signal);
    const { alerts } = await readAlerts(signal);
    showAlerts(alerts.filter((each) => isOf(each, about.name)));
    const { from, until } = this.#wanted;
    const part = from && until ? { from_ms: from, until_ms: until } : {};
    const asked = new URLSearchParams({ name: about.name, window, ...where, ...labels, ...part });
    if (split) {
      asked.set("split", split);
    }
    asked.set("points", pointsFor(clicksOf(readings, dimensions, split)));
    await this.#course.refresh(asked, split, { alerts, window, windows }, signal);
    byId("metric").classList.remove("old");
    this.#dueMs = startedMs + EVERY_MS - 1000;
  }

  /** What /api/metrics says of it; null where there is no such metric. */
  async #meaning(signal) {
    if (this.#about === null) {
      const { metrics } = await get("api/metrics", signal);
      const name = PREFIX + this.#wanted.metric.replace(PREFIX, "");
      this.#about = metrics.find((each) => each.name === name && each.scope === "window") ?? null;
    }
    const about = this.#about;
    const missing = `The settings show no metric ${this.#wanted.metric}.`;
    setText(byId("metric-title"), about?.title ?? missing);
    return about;
  }

  /** Of `[[ratios]]` that of the chosen one. */
  #showMeaning(about, { ratio }) {
    const own = about.ratios[ratio];
    setText(byId("metric-title"), own?.title ?? about.title);
    setTitle(`streamer: ${own?.title ?? about.title}`);
    setText(byId("metric-about"), about.about);
    const unit = own?.unit || about.unit;
    const facts = [["Name", about.name], ["Formula", own?.definition ?? about.formula], ["Unit", unit], ["Empty", about.empty]];
    setFacts(byId("metric-facts"), facts);
  }

  #missing(windows, dimensions) {
    const found = [];
    if (this.#wanted.window && !windows.includes(this.#wanted.window)) {
      found.push(`The settings have no window ${this.#wanted.window}: ${windows.at(-1)} is shown.`);
    }
    if (this.#wanted.split && ![NOTHING, ...dimensions].includes(this.#wanted.split)) {
      found.push(`There is no split by ${this.#wanted.split}.`);
    }
    return found.join(" ");
  }

  /** A select for each label beside the dimensions; returns what is chosen of each. */
  #showLabels(readings, about) {
    const own = readings.filter((reading) => reading.name === about.name);
    const items = about.labels
      .map((name) => ({ name, values: [...new Set(own.map((r) => r.labels[name]))].filter(Boolean) }))
      .filter(({ values }) => values.length > 0)
      .map(({ name, values }) => {
        const known = [this.#wanted[name], FIRST[name], values.at(-1)];
        return { name, values, value: known.find((each) => values.includes(each)) };
      });
    const shown = items.filter(({ values }) => values.length > 1);
    keep(byId("metric-labels"), shown, (item) => item.name, labelView);
    return Object.fromEntries(items.map(({ name, value }) => [name, value]));
  }

  #showControls(windows, window, dimensions, split) {
    setOptions(byId("metric-window"), windows.map((each) => ({ value: each, text: each })), window);
    const splits = [NOTHING, ...dimensions].map((each) => ({ value: each, text: each === NOTHING ? "nothing" : each }));
    setOptions(byId("metric-split"), splits, split ?? NOTHING);
    const others = dimensions.filter((name) => name !== split);
    this.#filters.show(others, this.#wanted);
    const pairs = others.map((name) => [name, this.#wanted[name] || ROLLUP]);
    return Object.fromEntries(pairs.filter(([, value]) => value !== ROLLUP));
  }

  /** A table for each dimension: the metric by its values. */
  #showSplits(readings, dimensions, about, labels, window) {
    const items = dimensions.map((dimension) => ({
      dimension,
      about,
      window,
      rows: rowsOf(readings, dimension, dimensions, about, labels),
    }));
    keep(byId("metric-splits"), items.filter(({ rows }) => rows.length), (item) => item.dimension, splitView);
  }
}

/** The clicks of a middling line. */
function clicksOf(readings, dimensions, split) {
  const others = dimensions.filter((name) => name !== split);
  const isLine = ({ labels }) => others.every((name) => labels[name] === ROLLUP);
  const found = readings.filter((reading) => reading.name === CLICKS && isLine(reading));
  const lines = found.filter(({ labels }) => split === undefined || labels[split] !== ROLLUP);
  return middling(lines.map((reading) => reading.value));
}

/** The values of a metric by one dimension, all others together, the largest first. */
function rowsOf(readings, dimension, dimensions, about, labels) {
  const others = dimensions.filter((name) => name !== dimension);
  const found = new Map();
  for (const reading of readings) {
    const of = reading.labels;
    const isWanted = others.every((name) => of[name] === ROLLUP) && of[dimension] !== ROLLUP;
    if (isWanted && Object.entries(labels).every(([k, v]) => (of[k] ?? v) === v)) {
      const row = found.get(of[dimension]) ?? { title: of[dimension] };
      row[reading.name] = reading.value;
      found.set(row.title, row);
    }
  }
  const rows = [...found.values()].filter((row) => row[about.name] !== undefined);
  return rows.sort((a, b) => b[about.name] - a[about.name]);
}

function splitView({ dimension }) {
  const table = emptyTable();
  return {
    root: table,
    update({ about, rows, window }) {
      const write = writerOf(about);
      const columns = [
        { title: dimension, isText: true, texts: (row) => [row.title] },
        { title: about.title, texts: (row) => [write(row[about.name]), rangeOf(row, about, write)] },
      ];
      fillTable(table, `${about.title} by ${dimension}, ${format.lastWithTimes(window)}`, columns, rows, (row) => row.title);
    },
  };
}

/** Counts have no decimals. */
function writerOf({ name, form }) {
  return name.startsWith(`${PREFIX}window_`) ? format.count : format.writer(form);
}

function rangeOf(row, about, write) {
  const [low, high] = endsOf(about.name).map((name) => row[name]);
  return low === undefined || high === undefined ? "" : `${write(low)} to ${write(high)}`;
}

function showAlerts(alerts) {
  const texts = alerts.map(
    ({ alert, segment, checks: { metric } }) => `${alert}, ${nameOf(segment)}: ${metric.status}. ${metric.reason}`,
  );
  byId("metric-alerts").hidden = !texts.length;
  keep(byId("metric-alerts").querySelector("ul"), texts, (text) => text, () => textView("li"));
}

function labelView({ name }) {
  const select = element("select", { name });
  const root = element("label", { class: "field" }, `${name} `, select);
  return {
    root,
    update: ({ values, value }) => setOptions(select, values.map((each) => ({ value: each, text: each })), value),
  };
}

// The course of a metric: lines over time, when alerts on it fired, and the same as a table.

import { firingsOf, knownHistory, readHistories } from "./alert_history.js";
import { Failure, get } from "./api.js";
import { PREFIX } from "./columns.js";
import { element, keep, setNote, setText } from "./dom.js";
import * as format from "./format.js";
import { ROLLUP } from "./segments.js";
import { STYLES, Timeline, firing, moment, reading } from "./timeline.js";

export const CLICKS = `${PREFIX}window_clicks`;
const POINTS = [60, 30, 20, 12, 6];
const CLICKS_A_POINT = 10;

/** The value in the middle of some; 0 of none. */
export function middling(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** As many points as so many clicks of a line can bear. */
export function pointsFor(clicks) {
  return POINTS.find((points) => clicks / points >= CLICKS_A_POINT) ?? POINTS.at(-1);
}

/** Shows what /api/history says below `parent`. */
export class Course {
  #timeline = new Timeline();
  #note = element("p", { class: "remark", hidden: "" });
  #head = element("tr");
  #body = element("tbody");
  #caption = element("caption");
  #details = element("details", {}, element("summary", {}, "Point by point"));
  #item = null;
  #text = "";

  constructor(parent) {
    const table = element("table", { class: "plain" }, this.#caption, element("thead", {}, this.#head), this.#body);
    this.#details.append(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Point by point" }, table));
    this.#details.addEventListener("toggle", () => this.#fill());
    parent.replaceChildren(this.#note, this.#timeline.root, this.#details);
  }

  /** Read and show the course that a query (URLSearchParams) asks for; `alerts` are those of
   * /api/alerts, `split` the dimension that lines are of, if any. */
  async refresh(query, split, alerts, signal) {
    const found = await historyOf(query, signal);
    const isThere = found.error === undefined && found.lines.length > 0;
    this.#timeline.root.hidden = !isThere;
    this.#details.hidden = !isThere;
    if (!isThere) {
      setNote(this.#note, found.error ?? "Nothing was counted in this time.");
      [this.#item, this.#text] = [null, ""];
      return;
    }
    const name = `${found.title}, the last ${found.window}`;
    const { starts_ms: starts, step_ms: step, at_ms: at } = found;
    const { form } = found;
    const write = format.writer(form);
    const lines = found.lines.slice(0, STYLES).map((line) => ({ ...line, title: titleOf(line.labels, split, found.labels) }));
    const watching = split ? [] : alerts.filter((each) => isOn(each, found, query));
    const targets = watching.map((each) => targetOf(each, write));
    const usual = watching.length ? watching[0].checks.metric.baseline : null;
    const own = [...new Set(alerts.filter((each) => isExactly(each, found, query)).map((each) => each.alert))];
    const show = () => {
      const { firings, from } = firingsIn(own.map(knownHistory), found, query);
      const since = from > starts[0] ? `, alerts known since ${format.clock(from)}` : "";
      const focus = focusOf(firings, lines);
      this.#show({ name, form, starts, step, at, lines, targets, usual, past: null, marks: [], firings, since, focus }, write);
    };
    setNote(this.#note, remark(found));
    show();
    await readHistories(own, signal);
    show();
  }

  #show(item, write) {
    const text = JSON.stringify({ ...item, at: 0 });
    if (text !== this.#text) {
      this.#text = text;
      this.#item = { ...item, write };
      this.#timeline.update(this.#item);
      this.#fill();
    }
  }

  #fill() {
    if (!this.#details.open || this.#item === null) {
      return;
    }
    const { name, starts, lines, firings, since, write } = this.#item;
    setText(this.#caption, `${name}, the newest first${since}`);
    const last = firings.length ? ["Alerts"] : [];
    const head = ["Time", ...lines.map((line) => line.title), ...last];
    keep(this.#head, head.map((text, i) => ({ text, i })), ({ text, i }) => `${i} ${text}`, headerView);
    const rows = starts.map((start, i) => {
      const texts = [moment(this.#item, i), ...lines.map((line) => reading(line, i, write))];
      return { key: start, texts: last.length ? [...texts, firing(this.#item, i)] : texts };
    });
    keep(this.#body, rows.reverse(), (row) => `${row.key} ${row.texts.length}`, rowView);
  }
}

async function historyOf(query, signal) {
  try {
    return await get(`api/history?${query}`, signal);
  } catch (failure) {
    if (failure instanceof Failure && [400, 404].includes(failure.status)) {
      return { error: format.capital(`${failure.message}.`), lines: [] };
    }
    throw failure;
  }
}

/** The line of which an alert fires; else the first. */
function focusOf(firings, lines) {
  const names = firings.map(({ name }) => name);
  return lines.find(({ title }) => names.some((name) => name.includes(`, ${title}`)))?.title ?? "";
}

function remark({ lines, omitted: fewer, counted_since_ms: since, starts_ms: starts }) {
  const found = [];
  const omitted = fewer + Math.max(0, lines.length - STYLES);
  if (omitted > 0) {
    found.push(`${format.counted(omitted, "line")} with fewer impressions not shown.`);
  }
  if (since > starts[0]) {
    found.push(`Counted since ${format.clock(since)}.`);
  }
  return found.join(" ");
}

/** What a line is of: its value of the split, and the labels in which lines may differ. */
function titleOf(labels, split, own) {
  const texts = split ? [labels[split]] : [];
  const others = own.filter((name) => name !== "maturity" && labels[name] !== undefined);
  texts.push(...others.map((name) => `${name} ${labels[name]}`));
  if (labels.maturity === "mature") {
    texts.push("mature");
  }
  return texts.join(", ") || "all together";
}

/** Whether an alert is on a metric, whatever its cut-off and options. */
export function isOf({ metric }, name) {
  return metric.replace(/[@.].*/, "") === name.replace(PREFIX, "");
}

/** Whether it is also on the cut-off, policy, … that is shown: "ndcg_ratio@10.engaged". */
function isExactly(alert, { name, lines }, query) {
  const values = new Set([...query.values(), ...lines.flatMap(({ labels }) => Object.values(labels))]);
  const options = alert.metric.replace(/^[^@.]*[@.]?/, "");
  const isShown = options === "" || values.has(options) || options.split(".").every((each) => values.has(each));
  return isOf(alert, name) && isShown;
}

/** Whether an alert is on this metric and all of the segment that is shown. */
function isOn(alert, found, query) {
  const isSame = Object.entries(alert.segment).every(([k, v]) => (query.get(k) ?? ROLLUP) === v);
  const isWindow = alert.window === found.window;
  return alert.checks.metric.baseline !== null && isSame && isWindow && isExactly(alert, found, query);
}

/** When alerts fired in the time that a course shows, a row for each segment; and since when that is
 * known. */
function firingsIn(histories, { starts_ms: starts, step_ms: step }, query) {
  const known = histories.filter((each) => each !== null);
  const end = starts.at(-1) + step;
  const isShown = ({ from, until }) => until > starts[0] && from < end;
  const firings = known
    .flatMap((history) => firingsOf(history, query))
    .map(({ name, isFromBefore, spans }) => ({
      name: isFromBefore ? `${name} (from before)` : name,
      spans: spans.filter(isShown).map((each) => ({ ...each, until: Math.min(each.until, end) })),
    }))
    .filter(({ spans }) => spans.length > 0);
  return { firings, from: Math.max(0, ...known.map((each) => each.from_ms)) };
}

function targetOf({ alert, checks, drop, direction }, write) {
  const isRise = direction === "lower"; // is better
  const value = checks.metric.baseline * (isRise ? 1 + drop : 1 - drop);
  const side = isRise ? "above" : "below";
  return { value, text: `alert ${alert}: ${side} ${write(value)}` };
}

function headerView({ text }) {
  const root = element("th", { scope: "col", class: text === "Time" ? "" : "number" }, text);
  return { root, update() {} };
}

function rowView({ texts }) {
  const cells = texts.map((_, i) => element(i ? "td" : "th", i ? { class: "number" } : { scope: "row" }));
  const root = element("tr", {}, ...cells);
  return { root, update: (row) => row.texts.forEach((text, i) => setText(cells[i], text)) };
}

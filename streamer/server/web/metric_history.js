// The course of a metric: lines over time, when alerts on it fired, and the same as a table.

import { firingsOf, knownHistory, readHistories } from "./alert_history.js";
import { find } from "./api.js";
import { PREFIX } from "./columns.js";
import { element, keep, setNote, setText } from "./dom.js";
import { csvButton, downloadButton, fileName, svgOf } from "./download.js";
import * as format from "./format.js";
import { readMarks } from "./marks.js";
import { Range } from "./range.js";
import { ROLLUP } from "./segments.js";
import { STYLES, Timeline, firing, moment, reading } from "./timeline.js";

export const CLICKS = `${PREFIX}window_clicks`;
const POINTS = [60, 30, 20, 12, 6];
const CLICKS_A_POINT = 5;
const WEEK_MS = 7 * 86_400_000;

/** The value in the middle of some; 0 of none. */
export function middling(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** As many points as so many clicks of a line can bear. */
export function pointsFor(clicks) {
  return POINTS.find((points) => clicks / points >= CLICKS_A_POINT) ?? POINTS.at(-1);
}

/** Shows what /api/history says below `parent`. `onRange` gets {from, until} of another range. */
export class Course {
  #timeline = new Timeline();
  #note = element("p", { class: "remark", hidden: "" });
  #head = element("tr");
  #body = element("tbody");
  #caption = element("caption");
  #details = element("details", { class: "points" }, element("summary", {}, "Point by point"));
  #range;
  #item = null;
  #text = "";

  constructor(parent, onRange) {
    const table = element("table", { class: "plain" }, this.#caption, element("thead", {}, this.#head), this.#body);
    this.#details.append(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Point by point" }, table));
    this.#details.append(csvButton(table, "points"));
    this.#details.addEventListener("toggle", () => this.#fill());
    this.#range = new Range(onRange);
    const svg = downloadButton("SVG", "Save the chart as SVG", () => ({
      name: `${fileName(this.#item.name)}.svg`,
      type: "image/svg+xml",
      text: svgOf(this.#timeline.svg),
    }));
    const tools = element("div", { class: "tools" }, this.#range.root, svg);
    parent.replaceChildren(this.#note, this.#timeline.root, tools, this.#details);
  }

  /** Read and show the course that a query (URLSearchParams) asks for; `alerts` are those of
   * /api/alerts, `split` the dimension that lines are of, if any, `window` the chosen one. */
  async refresh(query, split, { alerts, window, windows }, signal) {
    const found = await find(`api/history?${query}`, signal);
    const isThere = found.error === undefined && found.lines.length > 0;
    this.#timeline.root.hidden = !isThere;
    this.#details.hidden = !isThere;
    this.#range.show(query, found);
    if (!isThere) {
      setNote(this.#note, found.error ? format.capital(`${found.error}.`) : "Nothing was counted in this time.");
      [this.#item, this.#text] = [null, ""];
      return;
    }
    const { form } = found;
    const write = format.writer(form);
    const lines = linesOf(found, split);
    const isPart = query.has("from_ms");
    const name = isPart ? found.title : `${found.title}, ${format.last(found.window)}`;
    const { starts_ms: starts, step_ms: step, at_ms: at } = found;
    const own = [...new Set(alerts.filter((each) => isExactly(each, found, query)).map((each) => each.alert))];
    const marks = await readMarks(signal);
    const shown = { name, form, starts, step, at, lines, marks, split, write, past: null };
    const show = () => this.#show(completed(shown, found, query, { alerts, window, own }), write);
    setNote(this.#note, remark(found));
    show();
    await readHistories(own, signal);
    const focus = focusOf(firingsIn(own.map(knownHistory), found, query).firings, lines) || lines[0].title;
    shown.past = await lastWeek(query, found, split, { windows, focus }, signal);
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

/** The first lines; of a part of a window with the value of all of it in their titles. */
function linesOf(found, split) {
  const whole = new Map((found.whole ?? []).map((line) => [titleOf(line.labels, split, found.labels), line.values[0]]));
  const write = format.writer(found.form);
  return found.lines.slice(0, STYLES).map((line) => {
    const title = titleOf(line.labels, split, found.labels);
    const value = whole.get(title) ?? null;
    return { ...line, title: value === null ? title : `${title}, ${write(value)} in all` };
  });
}

/** What a course shows beside its lines: when alerts fired, what they tolerate and call usual. */
function completed(shown, found, query, { alerts, window, own }) {
  const { firings, from } = firingsIn(own.map(knownHistory), found, query);
  const since = from > shown.starts[0] ? `, alerts known since ${format.clock(from)}` : "";
  const { split, ...item } = shown;
  const focus = focusOf(firings, shown.lines);
  const on = alerts.filter((each) => isExactly(each, found, query) && each.checks.metric.baseline !== null);
  const targets = split ? [] : on.filter((each) => each.window === found.window && isOn(each, query));
  const asked = new URLSearchParams(query);
  if (split) {
    asked.set(split, focus || shown.lines[0].title);
  }
  const [usual] = on.filter((each) => each.window === window && isOn(each, asked));
  const selected = window === found.window || query.has("from_ms") ? null : shown.at - format.windowMs(window);
  return {
    ...item,
    ...{ firings, since, focus, selected },
    targets: targets.map((each) => targetOf(each, shown.write)),
    usual: usual?.checks.metric.baseline ?? null,
  };
}

/** The chosen line a week before, from a longer window that still keeps it; null where none does. */
async function lastWeek(query, found, split, { windows, focus }, signal) {
  const { starts_ms: starts, step_ms: step, at_ms: at } = found;
  const from = starts[0] - WEEK_MS;
  const longer = windows.find((each) => format.windowMs(each) > at - from);
  if (longer === undefined) {
    return null;
  }
  const asked = new URLSearchParams(query);
  asked.set("window", longer);
  asked.set("from_ms", String(from));
  asked.set("until_ms", String(starts.at(-1) + step - WEEK_MS));
  const { lines, starts_ms: old } = await find(`api/history?${asked}`, signal);
  const line = lines.find(({ labels }) => titleOf(labels, split, found.labels) === focus);
  return line ? { title: `${focus}, last week`, starts: old.map((ms) => ms + WEEK_MS), values: line.values } : null;
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

/** Whether an alert is on all of the segment that is asked for. */
function isOn(alert, query) {
  return Object.entries(alert.segment).every(([k, v]) => (query.get(k) ?? ROLLUP) === v);
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

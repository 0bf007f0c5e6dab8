// The status of every segment that an alert watches, the most urgent first.

import { expectation, knownHistory, nameOf } from "./alert_history.js";
import { byId, element, keep, setNote, setText } from "./dom.js";
import * as format from "./format.js";
import { emptyTable, fillTable } from "./item_table.js";
import { ROLLUP } from "./segments.js";

const MAX_ROWS = 200;
const KINDS = {
  "within the tolerance": "good", "perhaps beyond the tolerance": "warn",
  dropped: "bad", risen: "bad", "no traffic": "bad",
};
const NAMES = { dropped: "Dropped beyond the tolerance", risen: "Risen beyond the tolerance" };
const URGENT = [
  "dropped", "risen", "no traffic", "perhaps beyond the tolerance", "too little data",
  "days differ", "no baseline", "within the tolerance",
];

const COLUMNS = [
  { title: "Alert", isText: true, texts: (w) => [titleOf(w), aboutOf(w)] },
  { title: "Status", isText: true, texts: (w) => [wordsOf(w), w.reason], kind: kindOf },
  { title: "Value", texts: (w) => [shown(w, w.value), range(w.low, w.high, format.writer(w.form))] },
  { title: "Baseline", texts: (w) => [shown(w, w.baseline)] },
  { title: "Change", texts: (w) => [changeOf(w), range(w.change_low, w.change_high, format.lift)] },
  { title: "Support", texts: (w) => [format.count(w.support), `usually ${format.count(w.expected_support)}`] },
  { title: "Traffic", isText: true, texts: (w) => verdict(w.traffic), kind: (w) => kindOf(w.traffic ?? {}) },
  { title: "Reference week", isText: true, texts: (w) => verdict(w.reference), kind: (w) => kindOf(w.reference ?? {}) },
];

const WORDS = {
  "too little data": (one) => (one ? "has too little data" : "have too little data"),
  "days differ": (one) => (one ? "has days that differ too much" : "have days that differ too much"),
  "no baseline": (one) => (one ? "has no baseline yet" : "have no baseline yet"),
};
const CHANGES = ["dropped", "risen"];

/** Show the entries of /api/alerts: those of which nothing can be said yet as a line for each
 * alert, which unfolds, with what is known of coming verdicts. */
export function showWatched(entries) {
  const sorted = entries.toSorted((a, b) => urgency(a) - urgency(b) || b.support - a.support);
  const decided = sorted.filter(isDecided);
  const caption = "Every watched segment of which something can be said, with intervals below the values";
  fillTable(byId("alerts"), caption, COLUMNS, decided.slice(0, MAX_ROWS), keyOf);
  byId("alerts").hidden = !decided.length;
  const cut = decided.length - Math.min(decided.length, MAX_ROWS);
  setNote(byId("alerts-cut"), cut ? `${format.counted(cut, "less urgent segment")} not shown.` : "");
  const open = Map.groupBy(sorted.filter((each) => !isDecided(each)), (each) => each.alert);
  const all = Map.groupBy(sorted, (each) => each.alert);
  const items = [...open].map(([alert, some]) => ({
    alert, some, of: all.get(alert).length, ahead: expectation(knownHistory(alert)),
  }));
  keep(byId("alerts-open"), items, (item) => item.alert, openView);
}

/** The alerts that have segments of which nothing can be said yet. */
export function undecided(entries) {
  return [...new Set(entries.filter((each) => !isDecided(each)).map((each) => each.alert))];
}

/** Whether its metric, its traffic or the reference week says anything but that too little is known. */
function isDecided({ status, traffic, reference }) {
  const others = [traffic?.status, reference?.status].filter((each) => CHANGES.includes(each));
  return others.length > 0 || status in KINDS;
}

/** "ctr: 4 of 7 segments have too little data, 1 has no baseline yet", with their rows inside. */
function openView() {
  const summary = element("summary");
  const table = emptyTable();
  return {
    root: element("details", {}, summary, table),
    update({ alert, some, of, ahead }) {
      const counts = Map.groupBy(some, (each) => each.status);
      const [first, ...others] = [...counts].map(([status, { length }]) => ({
        length, words: WORDS[status]?.(length === 1) ?? status,
      }));
      const more = others.map(({ length, words }) => `, ${length} ${words}`);
      const begin = `${first.length} of ${format.counted(of, "segment")}`;
      setText(summary, `${alert}: ${begin} ${first.words}${more.join("")}${ahead}`);
      const caption = `Segments of ${alert} of which nothing can be said yet`;
      fillTable(table, caption, COLUMNS, some.slice(0, MAX_ROWS), keyOf);
    },
  };
}

/** Whether an entry is about everything together. */
export function isWhole({ segment }) {
  return Object.values(segment).every((value) => value === ROLLUP);
}

function keyOf({ alert, segment }) {
  return JSON.stringify([alert, ...Object.values(segment)]);
}

function titleOf(entry) {
  return `${entry.alert}: ${nameOf(entry.segment)}`;
}

function aboutOf({ title, window, drop }) {
  return `${title}, ${window}; ${format.share(drop)} tolerated`;
}

/** The most urgent of what is said of the metric, its traffic and the reference week. Of the last
 * two only a change is urgent. */
function urgency({ status, traffic, reference }) {
  const others = [traffic?.status, reference?.status].filter((each) => CHANGES.includes(each));
  return Math.min(...[status, ...others].map((each) => URGENT.indexOf(each)));
}

/** A status as people read it. */
function wordsOf({ status }) {
  return NAMES[status] ?? format.capital(status);
}

function kindOf({ status }) {
  return KINDS[status] ?? "open";
}

/** What is said of traffic or of the reference week; nothing where the alert has no such thing. */
function verdict(said) {
  if (!said) {
    return ["–", "switched off"];
  }
  return [wordsOf(said), said.reason];
}

function shown({ form }, value) {
  return value === null ? null : format.writer(form)(value);
}

function changeOf({ change }) {
  return change === null ? null : format.lift(change);
}

/** "2.60% to 2.90%"; an end that nothing bounds is absent. */
function range(low, high, write) {
  if (low === null && high === null) {
    return "";
  }
  if (low === null || high === null) {
    return low === null ? `at most ${write(high)}` : `at least ${write(low)}`;
  }
  return `${write(low)} to ${write(high)}`;
}

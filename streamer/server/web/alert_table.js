// The status of every segment that an alert watches, the most urgent first.

import { expectation, knownHistory, nameOf } from "./alert_history.js";
import { byId, element, keep, setNote, setText } from "./dom.js";
import * as format from "./format.js";
import { emptyTable, fillTable } from "./item_table.js";
import { ROLLUP } from "./segments.js";
import { stripView, stripWords } from "./strip.js";

const MAX_ROWS = 200;
/** The columns of /api/alerts' checks: values of the first, and what each of the others says. */
function columnsOf(checks, says) {
  const others = checks.slice(1).map(({ name, title }) => ({
    title, isText: true, texts: (w) => says.cell(w.checks[name]), kind: (w) => says.kind(w.checks[name]),
  }));
  return [
    { title: "Alert", isText: true, texts: (w) => [titleOf(w), aboutOf(w)] },
    { title: "Status", isText: true, texts: (w) => says.cell(w.main), kind: (w) => says.kind(w.main) },
    { title: "Value", texts: (w) => [shown(w, w.main.value), range(w.main.low, w.main.high, format.writer(w.form))] },
    { title: "Usual", texts: (w) => [shown(w, w.main.baseline)] },
    { title: "Change", texts: ({ main }) => [changeOf(main), range(main.change_low, main.change_high, format.change)] },
    { title: "Support", texts: ({ main }) => [format.count(main.support), `usually ${format.count(main.expected_support)}`] },
    ...others,
    { title: "Past 7 days", isText: true, texts: (w) => [stripWords(w)], extra: stripView },
  ];
}

/** What statuses look like, as /api/alerts says it, the most urgent first. */
class Statuses {
  #rank;
  #known;

  constructor(statuses) {
    this.#known = new Map(statuses.map((each) => [each.status, each]));
    this.#rank = statuses.map((each) => each.status);
  }

  kind(verdict) {
    return this.#known.get(verdict?.status)?.kind ?? "open";
  }

  /** In words, with the reason; a check that is switched off says nothing. */
  cell(verdict) {
    return verdict ? [this.#known.get(verdict.status)?.cell ?? format.capital(verdict.status), verdict.reason] : ["–", "switched off"];
  }

  /** "has no baseline yet" */
  phrase(status, isOne) {
    const words = this.#known.get(status);
    return (isOne ? words?.one : words?.several) || status;
  }

  /** What is urgent of an entry: the status of its metric, and changes for the worse of all else. */
  #urgent({ main, checks }) {
    const others = Object.values(checks).filter((each) => each !== main && this.kind(each) === "bad");
    return [main, ...others];
  }

  rank(entry) {
    return Math.min(...this.#urgent(entry).map(({ status }) => this.#rank.indexOf(status)));
  }

  /** Whether anything is said but that too little is known. */
  isDecided(entry) {
    return this.#urgent(entry).some((each) => this.kind(each) !== "open");
  }
}

/** The entries of /api/alerts, each with the verdict on its metric as `main`, the most urgent
 * first; those of which nothing can be said yet apart. */
export function alertsOf({ alerts, checks, statuses }) {
  const says = new Statuses(statuses);
  const entries = alerts.map((each) => ({ ...each, main: each.checks.metric }));
  const sorted = entries.toSorted((a, b) => says.rank(a) - says.rank(b) || b.main.support - a.main.support);
  const [decided, open] = [true, false].map((is) => sorted.filter((each) => says.isDecided(each) === is));
  return { entries, sorted, decided, open, says, columns: columnsOf(checks, says) };
}

/** Show what `alertsOf` found: those of which nothing can be said yet as a line for each alert,
 * which unfolds, with what is known of coming verdicts. */
export function showWatched({ sorted, decided, open, says, columns }) {
  const caption = "Watched segments with enough data, with the 95% range below each value";
  fillTable(byId("alerts"), caption, columns, decided.slice(0, MAX_ROWS), keyOf);
  byId("alerts").hidden = !decided.length;
  const cut = decided.length - Math.min(decided.length, MAX_ROWS);
  setNote(byId("alerts-cut"), cut ? `${format.counted(cut, "less urgent segment")} not shown.` : "");
  const all = Map.groupBy(sorted, (each) => each.alert);
  const items = [...Map.groupBy(open, (each) => each.alert)].map(([alert, some]) => ({
    alert, some, of: all.get(alert).length, ahead: expectation(knownHistory(alert)), says, columns,
  }));
  keep(byId("alerts-open"), items, (item) => item.alert, openView);
}

/** "ctr: 4 of 7 segments have too little data, 1 has no baseline yet", with their rows inside. */
function openView() {
  const summary = element("summary");
  const table = emptyTable();
  return {
    root: element("details", {}, summary, table),
    update({ alert, some, of, ahead, says, columns }) {
      const counts = Map.groupBy(some, (each) => each.main.status);
      const [first, ...others] = [...counts].map(([status, { length }]) => ({
        length, words: says.phrase(status, length === 1),
      }));
      const more = others.map(({ length, words }) => `, ${length} ${words}`);
      const begin = `${first.length} of ${format.counted(of, "segment")}`;
      setText(summary, `${alert}: ${begin} ${first.words}${more.join("")}${ahead}`);
      const caption = `Segments of ${alert} of which nothing can be said yet`;
      fillTable(table, caption, columns, some.slice(0, MAX_ROWS), keyOf);
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

function shown({ form }, value) {
  return value === null ? null : format.writer(form)(value);
}

function changeOf({ change }) {
  return change === null ? null : format.change(change);
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

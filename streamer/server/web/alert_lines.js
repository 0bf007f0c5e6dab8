// A line for every segment that an alert watches, the most urgent first, which opens to its reasons;
// of those of which nothing can be said yet one for each alert.

import { expectation, knownHistory, nameOf } from "./alert_history.js";
import { byId, element, keep, setAttribute, setFacts, setNote, setText } from "./dom.js";
import * as format from "./format.js";
import { ROLLUP } from "./segments.js";
import { stripView, stripWords } from "./strip.js";

const [FIRST, MAX_LINES] = [10, 200];
let [shown, last] = [FIRST, null];

/** The entries of /api/alerts, each with the verdict on its metric as `main` and the most urgent of
 * its statuses as `first`, the most urgent one first; those of which nothing can be said yet apart.
 * `says` tells what the status of a verdict looks like. */
export function alertsOf({ alerts, checks, statuses }) {
  const known = new Map(statuses.map((each, rank) => [each.status, { ...each, rank }]));
  const says = ({ status }) => known.get(status) ?? { kind: "open", sign: "?", cell: format.capital(status), rank: Infinity };
  const entries = alerts.map((each) => {
    const main = each.checks.metric;
    const others = Object.values(each.checks).filter((check) => check && check !== main && says(check).kind === "bad");
    const urgent = [main, ...others].map(says);
    const [first] = urgent.toSorted((a, b) => a.rank - b.rank);
    return { ...each, main, first, isOpen: urgent.every(({ kind }) => kind === "open"), facts: () => factsOf({ ...each, main }, checks, says) };
  });
  const sorted = entries.toSorted((a, b) => a.first.rank - b.first.rank || b.main.support - a.main.support);
  const [decided, open] = [false, true].map((is) => sorted.filter((each) => each.isOpen === is));
  return { entries, sorted, decided, open, says };
}

/** Show what `alertsOf` found, with what is known of coming verdicts. */
export function showWatched(found) {
  last = found;
  const { sorted, decided, open, says } = found;
  keep(byId("alerts"), decided.slice(0, shown), keyOf, lineView);
  byId("alerts").hidden = !decided.length;
  const cut = decided.length - Math.min(decided.length, shown);
  setNote(byId("alerts-cut"), cut ? `${format.counted(cut, "less urgent segment")} not shown.` : "");
  byId("alerts-more").hidden = !cut || shown === MAX_LINES;
  const all = Map.groupBy(sorted, (each) => each.alert);
  const items = [...Map.groupBy(open, (each) => each.alert)].map(([alert, some]) => ({
    alert, some, of: all.get(alert).length, ahead: expectation(knownHistory(alert)), says,
  }));
  keep(byId("alerts-open"), items, (item) => item.alert, openView);
}

/** A segment's line: its state, what it is, now, the change, and the strip of seven days. */
function lineView() {
  const names = ["verdict", "what", "now", "moved"];
  const [pill, what, now, moved] = names.map((name) => element("span", { class: name }));
  const strip = stripView();
  const summary = element("summary", {}, pill, " ", what, " ", now, " ", moved, " ", strip.root);
  const facts = element("dl", { class: "facts" });
  return {
    root: element("li", {}, element("details", {}, summary, facts)),
    update(entry) {
      const { first, main, alert, segment } = entry;
      setText(pill, `${first.sign} ${first.cell}`);
      setAttribute(pill, "data-kind", first.kind);
      setText(what, `${alert}: ${nameOf(segment)}`);
      setText(now, valueOf(entry, main.value) + (main.baseline === null ? "" : `, usually ${valueOf(entry, main.baseline)}`));
      setText(moved, main.change === null ? "–" : format.change(main.change));
      strip.update(entry);
      setFacts(facts, entry.facts());
    },
  };
}

/** The reasons of a line. */
function factsOf(entry, checks, says) {
  const { main, title, window, drop, form } = entry;
  const words = (verdict) => (verdict ? `${says(verdict).cell}: ${verdict.reason}` : "switched off");
  const usual = main.expected_support === null ? "" : `, usually ${format.count(main.expected_support)}`;
  return [
    ["Watched", `${title}, ${window}; ${format.share(drop)} tolerated`],
    ...checks.map(({ name, title: check }) => [check, words(entry.checks[name])]),
    ["95% range", range(main.low, main.high, format.writer(form)) || format.NO_DATA],
    ["Range of the change", range(main.change_low, main.change_high, format.change) || format.NO_DATA],
    ["Support", format.count(main.support) + usual],
    ["Past 7 days", stripWords(entry) ?? format.NO_DATA],
  ];
}

/** "ctr: 4 of 7 segments have too little data, 1 has no baseline yet", with their lines inside. */
function openView() {
  const [summary, list] = [element("summary"), element("ul", { class: "alerts" })];
  return {
    root: element("details", {}, summary, list),
    update({ alert, some, of, ahead, says }) {
      const counts = [...Map.groupBy(some, (each) => each.main.status)].map(([status, { length }], i) => {
        const { one, several } = says({ status });
        return `${length}${i ? "" : ` of ${format.counted(of, "segment")}`} ${(length === 1 ? one : several) || status}`;
      });
      setText(summary, `${alert}: ${counts.join(", ")}${ahead}`);
      keep(list, some.slice(0, MAX_LINES), keyOf, lineView);
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

function valueOf({ form }, value) {
  return value === null ? "–" : format.writer(form)(value);
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

byId("alerts-more").addEventListener("click", () => {
  shown = MAX_LINES;
  showWatched(last);
});

// An experiment by another dimension, to explore: read only where somebody opens it, for the exporter
// has to go through all users.

import { Failure, get } from "./api.js";
import { KINDS, liftOf, rangeWords } from "./comparison.js";
import { breakable, element, setNote } from "./dom.js";
import * as format from "./format.js";
import { emptyTable, fillTable } from "./item_table.js";

const EVERY_MS = 60_000;
const MAX_ROWS = 200;
const NEVER = new AbortController().signal;

/** The view of a dimension of `explore`, folded; `show` takes the document of the whole experiment,
 * and reads again what is open. */
export function exploration(name, by) {
  const hidden = element("span", { class: "hidden-text" }, ` of ${name}`);
  const summary = element("summary", {}, `Explore by ${by}`, hidden);
  const note = element("p", { class: "remark answer", hidden: "" });
  const tests = element("div", { class: "tests" });
  const table = emptyTable();
  table.hidden = true;
  const words = element("p", { class: "remark", hidden: "" });
  const root = element("details", { class: "more explore" }, summary, words, note, tests, table);
  const path = `api/experiments/${encodeURIComponent(name)}?by=${encodeURIComponent(by)}`;
  let [dueMs, isReading] = [0, false];

  async function refresh() {
    if (!root.open || isReading || performance.now() < dueMs) {
      return;
    }
    isReading = true;
    setNote(note, table.hidden ? "Going through all users…" : note.textContent);
    try {
      const found = await get(path, NEVER);
      dueMs = performance.now() + EVERY_MS;
      setNote(words, found.words);
      tests.replaceChildren(...found.heterogeneity.map(sentenceOf));
      setNote(note, fill(table, found));
    } catch (failure) {
      if (!(failure instanceof Failure)) {
        throw failure;
      }
      setNote(note, `Not updated, it is tried again: ${failure.message}.`);
    } finally {
      isReading = false;
    }
  }

  root.addEventListener("toggle", refresh);
  return {
    root,
    update() {},
    show({ last }) {
      root.hidden = last === null;
      refresh();
    },
  };
}

/** Show a row for each value and treatment; what has to be said beside it. */
function fill(table, { by, alpha, values }) {
  const rows = Object.entries(values).flatMap(([value, found]) => rowsOf(value, found));
  table.hidden = !rows.length;
  if (!rows.length) {
    return "Nobody has been in an arm yet.";
  }
  const caption = `${rows[0].metric.title} by ${by}, with intervals at alpha = ${format.number(alpha)} below the lifts`;
  fillTable(table, caption, columnsOf(by), rows.slice(0, MAX_ROWS), (row) => row.key);
  const cut = rows.length - MAX_ROWS;
  return cut > 0 ? `${format.counted(cut, "row")} with fewer users not shown.` : "";
}

/** Whether the lift of a treatment differs between the values. */
function sentenceOf({ sentence }) {
  return element("p", { class: "remark" }, ...breakable(sentence));
}

/** By the primary metric. */
function rowsOf(value, { users, metrics }) {
  const metric = metrics.find((each) => each.role === "primary");
  return metric.comparisons.map((pair, _, { length }) => ({
    key: JSON.stringify([value, pair.arm]),
    name: length > 1 ? `${value}: ${pair.arm}` : value,
    users,
    metric,
    pair,
  }));
}

function columnsOf(by) {
  return [
    { title: by, isText: true, texts: ({ name }) => [name] },
    { title: "Users", texts: ({ users }) => usersOf(Object.entries(users)) },
    { title: "Lift", texts: liftTexts },
    {
      title: "Verdict",
      isText: true,
      texts: ({ pair }) => [format.capital(pair.verdict.outcome), pair.verdict.reason],
      kind: ({ pair }) => KINDS[pair.verdict.outcome] ?? "warn",
    },
  ];
}

function usersOf(arms) {
  const total = arms.reduce((sum, [, users]) => sum + users, 0);
  return [format.count(total), arms.map(([arm, users]) => `${arm} ${format.count(users)}`).join(", ")];
}

function liftTexts({ pair }) {
  const [lift, write] = [liftOf(pair), format.lifts(pair.verdict.scale)];
  const range = lift.anytime === null ? "no interval" : rangeWords(lift, write);
  return [lift.value === null ? null : write(lift.value), range];
}

// One experiment: who is compared with whom, whether the split is as planned, and every comparison.

import { collapsible } from "./collapsible.js";
import { comparison, liftOf } from "./comparison.js";
import { element, freshId, keep, setAttribute, setNote, setText, textView } from "./dom.js";
import { exploration } from "./explore.js";
import * as format from "./format.js";
import { scaleOf } from "./interval_bar.js";

/** What links to one experiment end with. */
export function hashOf(name) {
  return `#experiment=${encodeURIComponent(name)}`;
}

/** The view of one entry of /api/experiments; `show` takes its document. `isAlone`: nothing links to it. */
export function card({ name }, isAlone = false) {
  const id = freshId("experiment");
  const root = element("article", { class: "card panel", "aria-labelledby": id, "data-name": name });
  const link = element(isAlone ? "span" : "a", isAlone ? {} : { href: hashOf(name) }, name);
  const parts = {
    who: element("p", { class: "who" }),
    advice: adviceView(),
    arms: element("dl", { class: "arms" }),
    split: element("p", { class: "split" }),
    warnings: element("ul", { class: "warnings" }),
    notes: element("ul", { class: "notes" }),
    comparisons: element("div"),
    explorations: element("div"),
    method: element("p", { class: "remark", hidden: "" }),
  };
  const hidden = element("span", { class: "hidden-text" }, ` of ${name}`);
  const details = collapsible(
    ["Details", hidden],
    ...[parts.arms, parts.split, parts.warnings, parts.notes, parts.comparisons, parts.explorations, parts.method],
  );
  root.append(
    element("header", {}, element("h3", { id }, link), parts.who),
    parts.advice.root,
    details,
  );
  let last = "";
  let explorations = new Map();
  return {
    root,
    update({ explore = [] }) {
      explorations = keep(parts.explorations, explore, (by) => by, (by) => exploration(name, by));
    },
    show(document) {
      details.hidden = false;
      explorations.forEach((view) => view.show(document));
      const text = JSON.stringify(document);
      if (text !== last) {
        last = text;
        fill(parts, document);
      }
    },
    fail(text) {
      setText(parts.who, text);
      details.hidden = true;
    },
  };
}

const KINDS = {
  ship: "good",
  "stop: harm": "bad",
  "do not trust: split": "bad",
  "do not trust: users in several arms": "bad",
};

/** What to do, in two words, and why. */
function adviceView() {
  const [words, reason] = [element("strong", { class: "verdict" }), element("span")];
  const root = element("p", { class: "advice", hidden: "" }, words, " ", reason);
  return {
    root,
    update(advice) {
      root.hidden = !advice;
      setText(words, advice ? format.capital(advice.words) : "");
      setAttribute(words, "data-kind", KINDS[advice?.action] ?? "open");
      setText(reason, advice?.reason ?? "");
    },
  };
}

function fill(parts, found) {
  setText(parts.who, `${found.who}, ${found.when}`);
  parts.advice.update(found.recommendation);
  keep(parts.arms, armsOf(found), (arm) => arm.name, armView);
  setNote(parts.split, found.last === null ? "" : found.metrics[0].split_test.words);
  setNote(parts.method, found.last === null ? "" : found.method);
  parts.split.classList.toggle("wrong", isWrong(found));
  fillList(parts.warnings, found.warnings);
  fillList(parts.notes, found.notes);
  const pairs = found.last === null ? [] : comparisonsOf(found);
  const scale = scaleOf(pairs.filter((pair) => !isAbsolute(pair)));
  const items = pairs.map((pair) => ({ ...pair, scale: isAbsolute(pair) ? scaleOf([pair]) : scale }));
  keep(parts.comparisons, items, (item) => item.key, comparison);
}

function fillList(list, texts) {
  list.hidden = !texts.length;
  keep(list, texts, (text) => text, () => textView("li"));
}

/** Whether there is no lift in percent, but a difference in the unit of the metric. */
function isAbsolute({ pair }) {
  return pair.verdict.scale === "absolute";
}

function armsOf({ users, control, last }) {
  const total = Object.values(users).reduce((sum, n) => sum + n, 0);
  return Object.entries(last === null ? {} : users).map(([name, n]) => ({
    name,
    role: name === control ? "control" : "treatment",
    text: total ? `${format.counted(n, "user")}, ${format.percent(n / total)}` : "no users",
  }));
}

function armView({ name, role }) {
  const users = element("dd");
  const root = element("div", {}, element("dt", {}, name, element("small", {}, ` ${role}`)), users);
  return { root, update: ({ text }) => setText(users, text) };
}

/** Whether the arms cannot be compared. */
function isWrong(found) {
  return found.metrics[0]?.split_test.is_wrong ?? false;
}

/** Every metric of every treatment, with the lift that the verdict speaks of. */
function comparisonsOf(found) {
  return found.metrics.flatMap((metric) =>
    metric.comparisons.map((pair) => ({
      key: JSON.stringify([metric.name, pair.arm]),
      found,
      metric,
      pair,
      lift: liftOf(pair),
    })),
  );
}

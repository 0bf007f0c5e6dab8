// One metric of one treatment: the verdict in words, the lift, its interval, and its history.

import { numbers } from "./comparison_details.js";
import { element, setText } from "./dom.js";
import * as format from "./format.js";
import { bar } from "./interval_bar.js";
import { pastLifts } from "./lift_history.js";

export const KINDS = {
  better: "good",
  worse: "bad",
  "harm beyond the margin": "bad",
  "no harm beyond the margin": "good",
  "keep running": "open",
};

/** The lift that a verdict speaks of. */
export function liftOf(pair) {
  return (pair.adjusted ?? pair)[pair.verdict.scale];
}

/** The view of an item {found, metric, pair, lift, scale}; it stays with its metric and arm. */
export function comparison({ metric, pair, found }) {
  const several = found.metrics[0].comparisons.length > 1;
  const name = several ? `${metric.title}: ${pair.arm}` : metric.title;
  const parts = {
    rule: element("p", { class: "rule" }),
    verdict: element("strong", { class: "verdict" }),
    lift: element("span", { class: "lift" }),
    range: element("span", { class: "range" }),
    reason: element("p", { class: "reason" }),
    arms: element("p", { class: "values" }),
  };
  const drawn = bar();
  const values = numbers();
  const course = pastLifts();
  const said = element("p", { class: "said" }, parts.verdict, " ", parts.lift, " ", parts.range);
  const left = element("div", { class: "now" }, said, drawn.root, parts.reason, parts.arms, values.root);
  const root = element(
    "section",
    { class: "comparison" },
    element("div", { class: "title" }, element("h4", {}, name), parts.rule),
    left,
    course.root,
  );
  return {
    root,
    update(item) {
      fill(parts, item);
      for (const view of [drawn, values, course]) {
        view.update(item);
      }
    },
  };
}

function fill(parts, { found, metric, pair, lift }) {
  const { outcome, reason } = pair.verdict;
  setText(parts.rule, metric.rule);
  setText(parts.verdict, outcome.charAt(0).toUpperCase() + outcome.slice(1));
  parts.verdict.dataset.kind = KINDS[outcome] ?? "warn";
  const write = format.lifts(pair.verdict.scale);
  setText(parts.lift, lift.value === null ? "" : write(lift.value));
  setText(parts.range, rangeWords(lift, write));
  setText(parts.reason, reason);
  setText(parts.arms, valueWords(found, metric, pair));
}

/** The interval of a lift in words. */
export function rangeWords({ anytime, reason }, write) {
  if (anytime === null) {
    return `no interval: ${reason || "not defined"}`;
  }
  return `between ${write(anytime.low)} and ${write(anytime.high)}`;
}

/** The values of both arms as they were counted, and the lift between these. */
function valueWords({ control }, metric, pair) {
  const write = format.writer(metric.form);
  const of = (name) => {
    const arm = metric.arms.find((each) => each.name === name);
    return arm.value === null ? `${name} has ${format.NO_DATA}` : `${name} has ${write(arm.value)}`;
  };
  const text = `${of(control)}, ${of(pair.arm)}.`;
  const raw = pair[pair.verdict.scale].value;
  if (!pair.adjusted || pair.adjusted.explained === null || raw === null) {
    return text;
  }
  return `${text} The unadjusted lift is ${format.lifts(pair.verdict.scale)(raw)}. ${pair.adjustment}`;
}

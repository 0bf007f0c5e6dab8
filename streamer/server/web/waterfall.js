// A change as steps from the value then to the value now: what each segment's own rate gave, the
// largest first, and what shifts of traffic between segments gave.

import { element, keep, setAttribute, setText, shape } from "./dom.js";
import * as format from "./format.js";

const [WIDTH, HEIGHT] = [1000, 14];
const MOST = 8;

/** The steps of a document of /api/explain; `isWorse(amount)` says which way is for the worse. */
export function stepsOf(found, isWorse) {
  const rates = found.segments
    .map(({ segment, rate }) => ({ name: segment, amount: rate }))
    .sort((a, b) => Math.abs(b.amount) - Math.abs(a.amount));
  const [shown, rest] = [rates.slice(0, MOST), rates.slice(MOST)];
  const others = rest.reduce((sum, { amount }) => sum + amount, 0);
  const parts = [
    ...shown,
    ...(rest.length ? [{ name: format.counted(rest.length, "other segment"), amount: others }] : []),
    ...(found.segments.length > 1 ? [{ name: "shifts of traffic between segments", amount: found.mix }] : []),
  ];
  let at = found.then;
  const steps = parts.map(({ name, amount }) => {
    const from = at;
    at += amount;
    const kind = isWorse(amount) ? "bad" : "good";
    return { name, from, to: at, amount, kind: amount === 0 ? "none" : kind };
  });
  return [
    { name: "then", from: 0, to: found.then, amount: null, kind: "whole" },
    ...steps,
    { name: "now", from: 0, to: found.now, amount: null, kind: "whole" },
  ];
}

/** Show the steps as rows of a table. */
export function showWaterfall(table, found, isWorse) {
  const steps = stepsOf(found, isWorse);
  const ends = steps.flatMap(({ from, to }) => [from, to]);
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const write = format.writer(found.form);
  const difference = format.differences(found.form, [found.change, ...steps.map(({ amount }) => amount ?? 0)]);
  const rows = steps.map((step) => ({
    ...step,
    ...{ low, length: high - low || 1 },
    text: step.amount === null ? write(step.to) : difference(step.amount),
  }));
  setText(table.caption, `From then to now: ${difference(found.change)}`);
  keep(table.tBodies[0], rows, ({ name, kind }) => `${name} ${kind === "whole"}`, rowView);
}

function rowView() {
  const bar = shape("rect", { y: 1, height: HEIGHT - 2 });
  const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", height: HEIGHT };
  const svg = shape("svg", { class: "step", "aria-hidden": "true", ...box }, bar);
  const [name, text] = [element("th", { scope: "row" }), element("td", { class: "number" })];
  return {
    root: element("tr", {}, name, element("td", {}, svg), text),
    update({ name: title, from, to, low, length, kind, text: written }) {
      setText(name, title);
      setText(text, written);
      const at = (value) => ((value - low) / length) * WIDTH;
      setAttribute(bar, "x", String(at(Math.min(from, to))));
      setAttribute(bar, "width", String(Math.max(2, at(Math.max(from, to)) - at(Math.min(from, to)))));
      setAttribute(bar, "data-kind", kind);
    },
  };
}

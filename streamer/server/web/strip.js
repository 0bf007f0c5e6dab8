// The past week of an alert's segment as a strip: where its value was worse by more than is tolerated,
// and where it fired.

import { knownHistory } from "./alert_history.js";
import { keep, setAttribute, shape } from "./dom.js";
import * as format from "./format.js";
import { segmentText } from "./firing.js";

const [WIDTH, HEIGHT] = [700, 14];
const KINDS = { true: "beyond", false: "fine", null: "open" };

/** What is known of an entry's past: its strip and its spans; null where nothing is. */
export function pastOf({ alert, segment }) {
  const history = knownHistory(alert);
  const own = history?.segments.find((each) => segmentText(each.segment) === segmentText(segment));
  return own?.strip ? { ...own, at: history.at_ms } : null;
}

/** "beyond the tolerance in 36 of 168 hours"; null where nothing is known. */
export function stripWords(entry) {
  const past = pastOf(entry);
  if (past === null) {
    return null;
  }
  const { beyond, step_ms: step } = past.strip;
  const known = beyond.filter((each) => each !== null).length;
  const hours = (looks) => format.number((looks * step) / 3_600_000).replace(/\.?0+$/, "");
  if (!known) {
    return "too few events to say";
  }
  return `beyond tolerance in ${hours(beyond.filter(Boolean).length)} of ${hours(known)} h`;
}

/** The view of an entry's strip. */
export function stripView() {
  const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", height: HEIGHT };
  const root = shape("svg", { class: "strip", "aria-hidden": "true", ...box });
  return {
    root,
    update(entry) {
      const past = pastOf(entry);
      keep(root, past === null ? [] : pieces(past), ({ key }) => key, pieceView);
    },
  };
}

/** Runs of looks that say the same, and upon them where the alert fired. */
function pieces({ strip: { beyond, from_ms: from, step_ms: step }, spans, at }) {
  const begin = from - step;
  const x = (ms) => (Math.max(0, ms - begin) / Math.max(1, at - begin)) * WIDTH;
  const runs = [];
  beyond.forEach((each, i) => {
    const kind = KINDS[each];
    const [start, end] = [begin + i * step, begin + (i + 1) * step];
    if (runs.at(-1)?.kind === kind) {
      runs.at(-1).end = end;
    } else {
      runs.push({ kind, start, end });
    }
  });
  const fired = spans
    .filter((span) => span.check === "metric" && span.fires_ms !== null)
    .map((span) => ({ kind: "fired", start: span.fires_ms, end: span.until_ms ?? at }));
  return [...runs, ...fired].map(({ kind, start, end }, i) => ({
    key: `${i} ${kind}`,
    kind,
    x: x(start),
    width: Math.max(2, x(Math.min(end, at)) - x(start)),
  }));
}

function pieceView() {
  const root = shape("rect", { y: 0, height: HEIGHT });
  return {
    root,
    update({ kind, x, width }) {
      setAttribute(root, "data-kind", kind);
      setAttribute(root, "x", String(x));
      setAttribute(root, "width", String(width));
    },
  };
}

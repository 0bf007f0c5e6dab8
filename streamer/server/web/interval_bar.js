// The interval of a lift as a bar, on one scale for all comparisons of an experiment.

import { niceAbove } from "./axis.js";
import { element, freshId, setAttribute, setText, shape } from "./dom.js";
import * as format from "./format.js";

const ENDS = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];
const ROOM = 1.05; // a lift does not stand on the edge
const HEIGHT = 26;
const WIDTH = 1000; // of the viewBox, which is stretched to the width there is

/** One end of a scale around 0. It holds every lift, and the whole bars of the primary metric; of the
 * others, twice the middle one of the far ends: a wide bar does not flatten them all, but is cut. */
export function scaleOf(items) {
  const drawn = items.filter(({ lift }) => lift.anytime !== null);
  if (!drawn.length) {
    return 0.1;
  }
  const ends = drawn.map(farEnd).sort((a, b) => a - b);
  const middle = ends[Math.floor((ends.length - 1) / 2)];
  const lifts = drawn.map(({ lift }) => ROOM * Math.abs(lift.value ?? 0));
  const primary = drawn.filter(({ found, metric }) => metric === found.metrics[0]).map(farEnd);
  return niceAbove(Math.max(Math.min(ends.at(-1), 2 * middle), ...lifts, ...primary, 1e-9), ENDS);
}

function farEnd({ lift }) {
  return Math.max(Math.abs(lift.anytime.low), Math.abs(lift.anytime.high));
}

/** The view of an item's interval. */
export function bar() {
  const [titleId, svgTitle] = [freshId("bar"), shape("title")];
  svgTitle.id = titleId;
  const parts = {
    title: svgTitle,
    interval: shape("rect", { class: "interval", y: 7, height: 12, rx: 0 }),
    value: shape("line", { class: "value", y1: 3, y2: 23 }),
    margin: shape("line", { class: "margin", y1: 0, y2: HEIGHT }),
  };
  const svg = shape(
    "svg",
    {
      role: "img",
      "aria-labelledby": titleId,
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      height: HEIGHT,
    },
    svgTitle,
    shape("line", { class: "axis", x1: 0, x2: WIDTH, y1: 13, y2: 13 }),
    shape("line", { class: "zero", x1: WIDTH / 2, x2: WIDTH / 2, y1: 0, y2: HEIGHT }),
    ...[parts.margin, parts.interval, parts.value],
  );
  const ends = ["", "", ""].map(() => element("span"));
  const marks = ["‹", "›"].map((text) => element("span", { class: "cut", hidden: "" }, text));
  const axis = element("div", { class: "ends", "aria-hidden": "true" }, ...ends);
  const frame = element("div", { class: "frame" }, svg, ...marks);
  marks.forEach((mark) => setAttribute(mark, "aria-hidden", "true"));
  const root = element("div", { class: "bar" }, frame, axis);
  return { root, update: (item) => draw(root, { ...parts, ends, marks }, item) };
}

function draw(root, parts, { lift, scale, metric, pair }) {
  root.hidden = lift.anytime === null;
  if (root.hidden) {
    return;
  }
  const { low, high } = lift.anytime;
  const at = (x) => ((Math.min(1, Math.max(-1, x / scale)) + 1) / 2) * WIDTH;
  const span = (name, ...values) =>
    values.forEach((x, i) => setAttribute(parts[name], `x${i + 1}`, String(at(x))));
  setAttribute(parts.interval, "x", String(at(low)));
  setAttribute(parts.interval, "width", String(Math.max(2, at(high) - at(low))));
  span("value", lift.value, lift.value);
  const harm = metric.direction === "lower" ? metric.margin : -metric.margin;
  const isRelative = pair.verdict.scale === "relative";
  const hasMargin = isRelative && metric.margin !== null && Math.abs(harm) <= scale;
  setAttribute(parts.margin, "visibility", hasMargin ? "visible" : "hidden");
  span("margin", hasMargin ? harm : 0, hasMargin ? harm : 0);
  const round = isRelative ? format.round : format.difference;
  [-scale, 0, scale].forEach((x, i) => setText(parts.ends[i], round(x)));
  parts.marks[0].hidden = low >= -scale;
  parts.marks[1].hidden = high <= scale;
  setText(parts.title, words(lift, metric, hasMargin, format.lifts(pair.verdict.scale)));
}

function words({ value, anytime }, { margin }, hasMargin, write) {
  const range = `between ${write(anytime.low)} and ${write(anytime.high)}`;
  const tolerated = hasMargin ? `; the dashed line is the tolerated harm of ${format.share(margin)}` : "";
  return `Lift ${write(value)}, ${range}${tolerated}`;
}

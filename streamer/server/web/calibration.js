// The calibration curve of one segment: predicted against observed clicks, by bins of the score.

import { PREFIX } from "./columns.js";
import { element, setText, shape } from "./dom.js";
import * as format from "./format.js";

const [OBSERVED, PREDICTED, IMPRESSIONS] = [
  "calibration_observed_ratio",
  "calibration_predicted_ratio",
  "window_calibration_impressions",
].map((name) => PREFIX + name);
/** The metrics that the curve is drawn from. */
export const CALIBRATION = [OBSERVED, PREDICTED, IMPRESSIONS];
const MATURITY = "provisional";
const SIZE = 260;
const EDGE = 44;

/** The bins that have impressions, by ascending score. */
export function binsOf(segment) {
  const found = segment.readings.filter(
    ({ name, labels }) => name === OBSERVED && labels.maturity === MATURITY,
  );
  return found
    .map(({ labels, value }) => ({
      bin: labels.bin,
      observed: value,
      predicted: segment.value(PREDICTED, labels),
      impressions: segment.value(IMPRESSIONS, labels) ?? 0,
    }))
    .filter(({ predicted }) => predicted !== undefined)
    .sort((a, b) => Number(a.bin) - Number(b.bin));
}

/** The view of a bin as a row of a table. */
export function rowView({ bin }) {
  const cells = [0, 1, 2].map(() => element("td", { class: "number" }));
  const head = element("th", { scope: "row" }, `up to ${bin}`);
  return {
    root: element("tr", {}, head, ...cells),
    update({ predicted, observed, impressions }) {
      const texts = [format.percent(predicted), format.percent(observed), format.count(impressions)];
      texts.forEach((text, i) => setText(cells[i], text));
    },
  };
}

/** On the diagonal the scores are right; below it they promise too much. The table has its numbers. */
export function curve(bins) {
  const most = Math.max(...bins.flatMap(({ predicted, observed }) => [predicted, observed]), 1e-9);
  const length = SIZE - 2 * EDGE;
  const x = (share) => EDGE + (share / most) * length;
  const y = (share) => SIZE - EDGE - (share / most) * length;
  const places = bins.map(({ predicted, observed }) => `${x(predicted)},${y(observed)}`).join(" ");
  const text = (words, at) => shape("text", { "text-anchor": "middle", ...at }, words);
  const middle = SIZE / 2;
  return shape(
    "svg",
    { "aria-hidden": "true", width: SIZE, height: SIZE, viewBox: `0 0 ${SIZE} ${SIZE}` },
    shape("line", { class: "zero", x1: x(0), y1: y(0), x2: x(most), y2: y(0) }),
    shape("line", { class: "zero", x1: x(0), y1: y(0), x2: x(0), y2: y(most) }),
    shape("line", { class: "margin", x1: x(0), y1: y(0), x2: x(most), y2: y(most) }),
    shape("polyline", { class: "curve", points: places }),
    ...bins.map(({ predicted, observed }) =>
      shape("circle", { class: "now", cx: x(predicted), cy: y(observed), r: 3.5 }),
    ),
    text(format.percent(most), { x: x(most), y: y(0) + 18 }),
    text("predicted", { x: middle, y: y(0) + 18 }),
    text("observed", { x: 14, y: middle, transform: `rotate(-90 14 ${middle})` }),
  );
}

// A line with a band over days, redrawn when the width changes.

import { niceAbove } from "./axis.js";
import { element, freshId, setText, shape } from "./dom.js";
import * as format from "./format.js";

const CAPTION = "Lift over time, with the interval at any time";
const HEIGHT = 168;
const EDGE = { left: 52, right: 10, top: 10, bottom: 24 };
const LABEL_WIDTH = 72;
const MIN_WIDTH = 200;

/** The view of {points, name, scale}: points have `day`, `value` and `anytime` (or null); the scale
 * is "relative" or "absolute". */
export function chart() {
  const ids = { title: freshId("chart"), desc: freshId("chart"), caption: freshId("chart") };
  const title = shape("title", { id: ids.title });
  const desc = shape("desc", { id: ids.desc });
  const drawn = shape("g");
  const svg = shape(
    "svg",
    { role: "img", height: HEIGHT, "aria-labelledby": ids.title, "aria-describedby": ids.desc },
    ...[title, desc, drawn],
  );
  const caption = element("figcaption", { id: ids.caption }, CAPTION);
  const root = element("figure", { class: "chart", "aria-labelledby": ids.caption }, caption, svg);
  let shown = { points: [], name: "", scale: "relative" };
  const draw = () => {
    const width = Math.max(MIN_WIDTH, Math.floor(root.clientWidth));
    svg.setAttribute("width", width);
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    drawn.replaceChildren(...(shown.points.length ? marks(shown, width) : []));
  };
  new ResizeObserver(draw).observe(root);
  return {
    root,
    update(item) {
      shown = item;
      setText(title, `${item.name}, day by day`);
      setText(desc, item.points.length ? words(item) : format.NO_DATA);
      draw();
    },
  };
}

/** First and last point in words. */
function words({ points, scale }) {
  const write = format.lifts(scale);
  const of = ({ day, value, anytime }) => {
    const range = anytime ? ` (${write(anytime.low)} to ${write(anytime.high)})` : "";
    return `${value === null ? format.NO_DATA : write(value)}${range} on ${format.day(day)}`;
  };
  const [first, last] = [of(points[0]), of(points.at(-1))];
  return points.length > 1 ? `From ${first} to ${last}.` : `${last}.`;
}

/** The range of the lift: twice the last band, so that the wide bands of the first days are cut. */
function rangeOf(points, scale) {
  const ends = points.flatMap(({ value, anytime }) =>
    value === null ? [] : [[anytime?.low ?? value, anytime?.high ?? value]],
  );
  if (!ends.length) {
    return [-0.1, 0.1];
  }
  const [low, high] = ends.at(-1);
  const most = 2 * Math.max(high, -low, (high - low) / 2, scale === "absolute" ? 1e-9 : 0.0005);
  const lowest = Math.min(0, ...ends.map((pair) => pair[0]));
  const highest = Math.max(0, ...ends.map((pair) => pair[1]));
  return [Math.max(lowest, -most), Math.min(highest, most)];
}

function marks({ points, scale }, width) {
  const round = scale === "absolute" ? format.difference : format.round;
  const [low, high] = rangeOf(points, scale);
  const step = niceAbove((high - low) / 4 || 0.05);
  const bottom = Math.floor(low / step - 1e-9) * step;
  const top = Math.ceil(high / step + 1e-9) * step;
  const days = points.map((point) => Date.parse(point.day));
  const length = Math.max(1, days.at(-1) - days[0]);
  const plot = { width: width - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
  const x = (ms) => EDGE.left + (days.length > 1 ? (ms - days[0]) / length : 0.5) * plot.width;
  const y = (value) => {
    const share = (top - Math.min(top, Math.max(bottom, value))) / (top - bottom);
    return EDGE.top + share * plot.height;
  };
  const at = points.map((point, i) => ({ ...point, x: x(days[i]) }));
  const lines = [];
  for (let i = Math.round(bottom / step); i <= Math.round(top / step); i += 1) {
    lines.push(...gridLine(round(i * step), y(i * step), width));
  }
  const zero = shape("line", { class: "zero", x1: EDGE.left, x2: width - EDGE.right, y1: y(0), y2: y(0) });
  return [...lines, ...dayLabels(at, plot.width), ...bands(at, y), zero, ...curve(at, y)];
}

function gridLine(text, y, width) {
  return [
    shape("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y, y2: y }),
    shape("text", { x: EDGE.left - 8, y: y + 4, "text-anchor": "end" }, text),
  ];
}

/** As many days as there is room for, the first and the last among them. */
function dayLabels(points, width) {
  const most = Math.max(2, Math.floor(width / LABEL_WIDTH));
  const every = Math.max(1, Math.ceil((points.length - 1) / (most - 1)));
  const last = points.length - 1;
  return points
    .map((point, i) => ({ ...point, i }))
    .filter(({ i }) => i === last || (i % every === 0 && (i === 0 || last - i >= every)))
    .map(({ day, x, i }) => {
      const anchor = last === 0 ? "middle" : { 0: "start", [last]: "end" }[i] ?? "middle";
      const place = { x, y: HEIGHT - 6, "text-anchor": anchor };
      return shape("text", place, format.shortDay(day));
    });
}

/** Runs of neighbouring points that have something. */
function runs(points, has) {
  const found = [[]];
  for (const point of points) {
    if (has(point)) {
      found.at(-1).push(point);
    } else if (found.at(-1).length) {
      found.push([]);
    }
  }
  return found.filter((run) => run.length);
}

function bands(points, y) {
  return runs(points, (point) => point.anytime !== null).map((run) => {
    if (run.length === 1) {
      const [{ x, anytime }] = run;
      const [y1, y2] = [y(anytime.low), y(anytime.high)];
      return shape("line", { class: "whisker", x1: x, x2: x, y1, y2 });
    }
    const upper = run.map(({ x, anytime }) => `${x},${y(anytime.high)}`);
    const lower = run.map(({ x, anytime }) => `${x},${y(anytime.low)}`).reverse();
    return shape("polygon", { class: "band", points: [...upper, ...lower].join(" ") });
  });
}

function curve(points, y) {
  const found = runs(points, (point) => point.value !== null);
  const lines = found.map((run) => {
    const places = run.map(({ x, value }) => `${x},${y(value)}`).join(" ");
    return shape("polyline", { class: "curve", points: places });
  });
  const last = found.at(-1)?.at(-1);
  return last ? [...lines, shape("circle", { class: "now", cx: last.x, cy: y(last.value), r: 3.5 })] : lines;
}

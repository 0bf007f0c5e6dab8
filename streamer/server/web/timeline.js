// Lines over time with their intervals as bands; a cursor reads them by pointer and by keyboard.

import { element, keep, setAttribute, setText, shape } from "./dom.js";
import * as format from "./format.js";
import { niceAbove } from "./interval_bar.js";

const HEIGHT = 220;
const EDGE = { left: 56, right: 12, top: 10, bottom: 26 };
const LABEL_WIDTH = 84;
const [LANES, LANE_HEIGHT] = [4, 18];
const MIN_WIDTH = 220;
const STYLES = 6;
const KEYS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 };

/**
 * Shows {name, starts, step, at, lines, write, targets, firings}: points begin at `starts` (ms) and
 * last `step`, the last until `at`; lines have `title`, `values`, `lower` and `upper` (null: no
 * value); targets have `value` and `text`, firings `name` and `spans` of `from`, `until` and `text`.
 * `root` is its element.
 */
export class Timeline {
  #drawn = shape("g");
  #cursor = shape("line", { class: "cursor", y1: EDGE.top });
  #svg = shape("svg", { height: HEIGHT, "aria-hidden": "true" }, this.#drawn, this.#cursor);
  #slider = element("div", { class: "plot", role: "slider", tabindex: "0" }, this.#svg);
  #when = element("p", { class: "when" });
  #legend = element("ul", { class: "legend" });
  #item = null;
  #place = null;
  #at = -1;
  #isFollowing = true;

  constructor() {
    this.root = element("figure", { class: "chart timeline" }, this.#slider, this.#when, this.#legend);
    const slider = this.#slider;
    setAttribute(slider, "aria-valuemin", "0");
    setAttribute(slider, "aria-valuenow", "0");
    setAttribute(slider, "aria-label", "Course");
    slider.addEventListener("keydown", (event) => {
      if (event.key in KEYS && this.#isShown) {
        event.preventDefault();
        this.#go(this.#at + KEYS[event.key]);
      }
    });
    slider.addEventListener("pointermove", (event) => {
      if (this.#isShown) {
        this.#go(this.#place.nearest(event.clientX - slider.getBoundingClientRect().left));
      }
    });
    slider.addEventListener("pointerleave", () => this.#isShown && this.#go(Infinity));
    new ResizeObserver(() => this.#draw()).observe(slider);
  }

  update(item) {
    const last = item.starts.length - 1;
    this.#at = this.#isFollowing ? last : Math.min(this.#at, last);
    this.#item = item;
    setAttribute(this.#slider, "aria-label", `${item.name}; arrow keys move through time`);
    this.#draw();
  }

  get #isShown() {
    return this.#item !== null && this.#item.starts.length > 0 && this.#place !== null;
  }

  #draw() {
    if (this.#item === null || !this.#item.starts.length) {
      this.#drawn.replaceChildren();
      return;
    }
    const width = Math.max(MIN_WIDTH, Math.floor(this.#slider.clientWidth));
    this.#svg.setAttribute("width", width);
    const height = HEIGHT + lanesOf(this.#item).length * LANE_HEIGHT;
    this.#svg.setAttribute("height", height);
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    setAttribute(this.#cursor, "y2", String(height - EDGE.bottom));
    this.#place = placeOf(this.#item, width);
    this.#drawn.replaceChildren(...marks(this.#item, this.#place, width));
    this.#read();
  }

  #go(at) {
    const last = this.#item.starts.length - 1;
    this.#at = Math.min(last, Math.max(0, at));
    this.#isFollowing = this.#at === last;
    this.#read();
  }

  /** Say what stands at the cursor. */
  #read() {
    const [item, at] = [this.#item, this.#at];
    const x = String(this.#place.x(item.starts[at]));
    setAttribute(this.#cursor, "x1", x);
    setAttribute(this.#cursor, "x2", x);
    const fired = firing(item, at);
    const when = moment(item, at) + (fired && `. ${format.capital(fired)}`);
    setText(this.#when, when);
    const rows = item.lines.map((line, i) => ({ title: line.title, i, text: reading(line, at, item.write) }));
    keep(this.#legend, rows, (row) => row.title, legendView);
    const texts = rows.map((row) => `${row.title}: ${row.text}`);
    setAttribute(this.#slider, "aria-valuemax", String(item.starts.length - 1));
    setAttribute(this.#slider, "aria-valuenow", String(at));
    setAttribute(this.#slider, "aria-valuetext", `${when}. ${texts.join("; ")}`);
  }
}

function legendView({ i }) {
  const value = element("span", { class: "value" });
  const title = element("span", { class: "title" });
  const swatch = shape("line", { class: `line style-${i % STYLES}`, x1: 0, x2: 22, y1: 6, y2: 6 });
  const key = shape("svg", { width: 22, height: 12, "aria-hidden": "true" }, swatch);
  return {
    root: element("li", {}, key, title, value),
    update(row) {
      setText(title, row.title);
      setText(value, row.text);
      setAttribute(swatch, "class", `line style-${row.i % STYLES}`);
    },
  };
}

/** "3.12% (2.98% to 3.30%)". */
export function reading({ values, lower, upper }, at, write) {
  const value = values[at];
  if (value === null || value === undefined) {
    return format.NO_DATA;
  }
  const [low, high] = [lower[at] ?? null, upper[at] ?? null];
  return low === null || high === null ? write(value) : `${write(value)} (${write(low)} to ${write(high)})`;
}

/** From when to when a point is. */
export function moment({ starts, step, at }, place) {
  const start = starts[place];
  return format.period(start, Math.min(start + step, Math.max(at, start)));
}

/** "alert ctr, women: dropped": what fired at some time of a point; "" where nothing did. */
export function firing({ starts, step, firings }, place) {
  const [from, until] = [starts[place], starts[place] + step];
  return firings
    .flatMap(({ name, spans }) => {
      const texts = spans.filter((span) => span.from < until && span.until > from).map((span) => span.text);
      return texts.length ? [`${name}: ${[...new Set(texts)].join(", ")}`] : [];
    })
    .join("; ");
}

/** The firings that have a lane above the plot; the cursor and the table have all. */
function lanesOf({ firings }) {
  return firings.slice(0, LANES);
}

function placeOf(item, width) {
  const { starts, step, lines } = item;
  const [bottom, top, tick] = rangeOf(lines, item.targets);
  const lanes = lanesOf(item).length * LANE_HEIGHT;
  const plot = { width: width - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
  const length = Math.max(step, starts.at(-1) - starts[0]);
  const x = (ms) => EDGE.left + ((ms - starts[0]) / length) * plot.width;
  const y = (value) => {
    const share = (top - Math.min(top, Math.max(bottom, value))) / (top - bottom);
    return EDGE.top + lanes + share * plot.height;
  };
  const nearest = (at) => Math.round(((at - EDGE.left) / plot.width) * (length / step));
  return { x, y, nearest, bottom, top, tick, base: EDGE.top + lanes + plot.height };
}

/** Bottom, top and the step of the axis: all values, and of the bands what does not flatten them. */
function rangeOf(lines, targets) {
  const values = lines.flatMap((line) => line.values.filter((v) => v !== null));
  values.push(...targets.map((mark) => mark.value));
  if (!values.length) {
    return [0, 1, 0.25];
  }
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(most - least, Math.abs(most) * 0.2, 1e-9);
  const ends = lines.flatMap((line) => [...line.lower, ...line.upper].filter((v) => v !== null && v !== undefined));
  const low = Math.max(Math.min(least, ...ends), least - room);
  const high = Math.min(Math.max(most, ...ends), most + room);
  const from = low >= 0 && low < 0.6 * high ? 0 : low;
  const tick = niceAbove((high - from) / 4 || 1);
  return [Math.floor(from / tick + 1e-9) * tick, Math.ceil(high / tick - 1e-9) * tick, tick];
}

function marks(item, place, width) {
  const found = [];
  for (let i = Math.round(place.bottom / place.tick); i <= Math.round(place.top / place.tick); i += 1) {
    const at = place.y(i * place.tick);
    found.push(
      shape("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: at, y2: at }),
      shape("text", { x: EDGE.left - 8, y: at + 4, "text-anchor": "end" }, item.write(i * place.tick)),
    );
  }
  found.push(...timeLabels(item, place, width));
  lanesOf(item).forEach((row, lane) => found.push(...laneOf(row, lane, place, width)));
  item.lines.forEach((line, i) => found.push(...bandsOf(line, item.starts, place, i)));
  for (const { value, text } of item.targets) {
    const at = place.y(value);
    found.push(
      shape("line", { class: "target", x1: EDGE.left, x2: width - EDGE.right, y1: at, y2: at }),
      shape("text", { x: EDGE.left + 4, y: at - 5 }, text),
    );
  }
  item.lines.forEach((line, i) => found.push(...linesOf(line, item.starts, place, i)));
  return found;
}

/** The times of one segment's alert, with its name, and a shade below them. */
function laneOf({ name, spans }, lane, { x, base }, width) {
  const y = EDGE.top + lane * LANE_HEIGHT;
  const within = (ms) => Math.min(width - EDGE.right, Math.max(EDGE.left, x(ms)));
  const found = spans.flatMap(({ from, until }) => {
    const [left, right] = [within(from), within(until)];
    const wide = { x: left, width: Math.max(3, right - left) };
    return [
      shape("rect", { class: "shade", ...wide, y, height: base - y, opacity: 0.08 }),
      shape("rect", { class: "firing", ...wide, y, height: LANE_HEIGHT - 6 }),
    ];
  });
  const first = within(Math.min(...spans.map((span) => span.from)));
  const last = within(Math.max(...spans.map((span) => span.until)));
  const isLeft = first - EDGE.left > width - last;
  const at = isLeft ? { x: first - 6, "text-anchor": "end" } : { x: last + 6 };
  return [...found, shape("text", { ...at, y: y + LANE_HEIGHT - 7 }, name)];
}

function timeLabels({ starts, step }, place, width) {
  const most = Math.max(2, Math.floor((width - EDGE.left) / LABEL_WIDTH));
  const every = Math.max(1, Math.ceil(starts.length / most));
  const long = starts.at(-1) - starts[0];
  return starts
    .filter((_, i) => i % every === 0)
    .map((ms, i, all) => {
      const anchor = i === 0 ? "start" : i === all.length - 1 && all.length > 1 ? "end" : "middle";
      const at = { x: place.x(ms), y: place.base + EDGE.bottom - 8, "text-anchor": anchor };
      return shape("text", at, format.instant(ms, step, long));
    });
}

/** Runs of neighbouring points that have something. */
function runs(values) {
  const found = [[]];
  values.forEach((value, i) => {
    if (value !== null && value !== undefined) {
      found.at(-1).push(i);
    } else if (found.at(-1).length) {
      found.push([]);
    }
  });
  return found.filter((run) => run.length);
}

function bandsOf({ lower, upper }, starts, { x, y }, style) {
  return runs(lower)
    .filter((run) => run.length > 1)
    .map((run) => {
      const above = run.map((i) => `${x(starts[i])},${y(upper[i])}`);
      const below = run.map((i) => `${x(starts[i])},${y(lower[i])}`).reverse();
      const points = [...above, ...below].join(" ");
      return shape("polygon", { class: `around style-${style % STYLES}`, points });
    });
}

function linesOf({ values }, starts, { x, y }, style) {
  const name = `line style-${style % STYLES}`;
  return runs(values).map((run) => {
    const points = run.map((i) => `${x(starts[i])},${y(values[i])}`);
    return run.length > 1
      ? shape("polyline", { class: name, points: points.join(" ") })
      : shape("circle", { class: `${name} dot`, cx: x(starts[run[0]]), cy: y(values[run[0]]), r: 2.5 });
  });
}

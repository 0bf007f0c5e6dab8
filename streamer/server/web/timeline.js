// Lines over time; the chosen one has its interval as a band. A cursor reads them by pointer and by
// keyboard.

import { timeTicks, valueAxis, valueTicks } from "./axis.js";
import { element, keep, setAttribute, setText, shape } from "./dom.js";
import * as format from "./format.js";
import { LANE_HEIGHT, hasLane, laneOf, legendEntry, legendOf, namesOf } from "./timeline_marks.js";

const HEIGHT = 220;
const EDGE = { left: 56, top: 10, bottom: 28 };
let fades = 0;
const [NARROW, RIGHT, RIGHT_WITH_NAMES] = [640, 12, 112];
const [LABEL_WIDTH, FADE] = [7.2, 36];
const MIN_WIDTH = 220;
export const STYLES = 6;
const KEYS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 };

/**
 * Shows {name, starts, step, at, lines, form, write, usual, past, targets, firings, marks}: points
 * begin at `starts` (ms) and last `step`, the last until `at`; lines have `title`, `values`, `lower`
 * and `upper` (null: no value); `past` is a line of before with `starts`, `values` and `title`, or
 * null; targets have `value` and `text`, firings `name` and `spans` of `from`, `until` and `text`,
 * marks `ms` and `text`. `root` is its element.
 */
export class Timeline {
  #drawn = shape("g");
  #cursor = shape("line", { class: "cursor", y1: EDGE.top });
  #svg = shape("svg", { height: HEIGHT, "aria-hidden": "true" }, this.#drawn, this.#cursor);
  #slider = element("div", { class: "plot", role: "slider", tabindex: "0" }, this.#svg);
  #when = element("p", { class: "when" });
  #legend = element("ul", { class: "legend" });
  #around = element("ul", { class: "legend around-lines" });
  #item = null;
  #place = null;
  #at = -1;
  #focus = "";
  #isFollowing = true;

  constructor() {
    this.root = element("figure", { class: "chart timeline" }, this.#slider, this.#around, this.#when, this.#legend);
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
    this.#legend.addEventListener("click", (event) => this.#choose(event.target.closest("button")));
    new ResizeObserver(() => this.#draw()).observe(slider);
  }

  update(item) {
    const last = item.starts.length - 1;
    this.#at = this.#isFollowing ? last : Math.min(this.#at, last);
    this.#item = item;
    setAttribute(this.#slider, "aria-label", `${item.name}; arrow keys move through time`);
    this.#draw();
  }

  /** The drawing, for a file. */
  get svg() {
    return this.#svg;
  }

  get #isShown() {
    return this.#item !== null && this.#item.starts.length > 0 && this.#place !== null;
  }

  #choose(button) {
    if (button) {
      this.#focus = button.value;
      this.#draw();
    }
  }

  #draw() {
    if (this.#item === null || !this.#item.starts.length) {
      this.#drawn.replaceChildren();
      return;
    }
    const width = Math.max(MIN_WIDTH, Math.floor(this.#slider.clientWidth));
    const titles = this.#item.lines.map((line) => line.title);
    const focus = Math.max(0, titles.indexOf(this.#focus || this.#item.focus));
    this.#place = placeOf(this.#item, width, focus);
    const { height } = this.#place;
    this.#svg.setAttribute("width", width);
    this.#svg.setAttribute("height", height);
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    setAttribute(this.#cursor, "y2", String(height - EDGE.bottom));
    this.#drawn.replaceChildren(...drawing(this.#item, this.#place));
    keep(this.#around, legendOf(this.#item, this.#place), ({ key }) => key, legendEntry);
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
    const happened = [firing(item, at), marked(item, at)].filter(Boolean);
    const when = [moment(item, at), ...happened.map(format.capital)].join(". ");
    setText(this.#when, when);
    const rows = item.lines.map((line, i) => {
      const text = reading(line, at, item.write);
      return { title: line.title, i, text, isChosen: i === this.#place.focus && item.lines.length > 1 };
    });
    keep(this.#legend, rows, (row) => row.title, legendView);
    const texts = rows.map((row) => `${row.title}: ${row.text}`);
    setAttribute(this.#slider, "aria-valuemax", String(item.starts.length - 1));
    setAttribute(this.#slider, "aria-valuenow", String(at));
    setAttribute(this.#slider, "aria-valuetext", `${when}. ${texts.join("; ")}`);
  }
}

function legendView({ i }) {
  const value = element("span", { class: "value" });
  const title = element("button", { type: "button", class: "title" });
  const swatch = shape("line", { class: `line style-${i % STYLES}`, x1: 0, x2: 22, y1: 6, y2: 6 });
  const key = shape("svg", { width: 22, height: 12, "aria-hidden": "true" }, swatch);
  return {
    root: element("li", {}, key, title, value),
    update(row) {
      setText(title, row.title);
      setAttribute(title, "value", row.title);
      setAttribute(title, "title", `${row.title}: show its 95% range`);
      setAttribute(title, "aria-pressed", String(row.isChosen));
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

/** The marks within a point; "" where there are none. */
export function marked({ starts, step, marks }, place) {
  const [from, until] = [starts[place], starts[place] + step];
  return marks.filter(({ ms }) => ms >= from && ms < until).map(({ text }) => text).join("; ");
}

function placeOf(item, width, focus) {
  const { starts, step, lines, usual, past } = item;
  const isThere = (value) => value !== null && value !== undefined;
  const values = lines.flatMap((line) => settled(line, item).filter(isThere));
  values.push(...(past?.values ?? []).filter(isThere));
  values.push(...item.targets.map((mark) => mark.value));
  const { lower, upper } = lines[focus];
  const bands = [lower, upper].flatMap((ends) => settled({ values: ends }, item).filter(isThere));
  bands.push(...lines.flatMap((line) => coming(line, item)));
  const axis = valueAxis(values, bands, item.form, usual ?? null);
  const heads = hasLane(item) ? LANE_HEIGHT : 0;
  const ticks = valueTicks(axis, item.form);
  const left = Math.max(EDGE.left, 12 + LABEL_WIDTH * Math.max(...ticks.map(({ text }) => text.length)));
  const isOver = bands.some((value) => value > axis.top);
  const hasNames = width >= NARROW && lines.length > 1;
  const right = width - (hasNames ? RIGHT_WITH_NAMES : RIGHT);
  const plot = { width: right - left, height: HEIGHT - EDGE.top - EDGE.bottom };
  const first = starts[0];
  const length = Math.max(step, starts.at(-1) - first);
  const isAlone = starts.length === 1;
  const from = isAlone ? first - step / 2 : first; // a point alone stands in the middle
  const x = (ms) => left + ((ms - from) / length) * plot.width;
  const y = (value) => {
    const share = (axis.top - Math.min(axis.top, Math.max(axis.bottom, value))) / (axis.top - axis.bottom);
    return EDGE.top + heads + share * plot.height;
  };
  const within = (ms) => Math.min(right, Math.max(left, x(ms)));
  const nearest = (at) => Math.round(((at - left) / plot.width) * (length / step));
  const base = EDGE.top + heads + plot.height;
  return {
    x, y, within, nearest, axis, ticks, isOver, base, focus, hasNames, left, right, plot,
    ...{ top: EDGE.top, from, until: from + length, height: HEIGHT + heads },
  };
}

/** A value without the point that is not half over: what it will be is not known yet. */
function settled({ values }, { starts, step, at }) {
  const isYoung = starts.length > 1 && at - starts.at(-1) < step / 2;
  return isYoung ? values.slice(0, -1) : values;
}

/** What there is yet of the point that is left out. */
function coming(line, item) {
  return line.values.slice(settled(line, item).length).filter((value) => value !== null);
}

function drawing(item, place) {
  const { x, y, left, right } = place;
  const found = place.ticks.flatMap(({ value, text }) => [
    shape("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }),
    shape("text", { class: "tick-y", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, text),
  ]);
  found.push(...timeLabels(item, place));
  found.push(...laneOf(item, place));
  found.push(...bandsOf(item.lines[place.focus], item, place, place.focus));
  if (item.selected) {
    const from = place.within(item.selected);
    found.push(shape("line", { class: "selected", x1: from, x2: right, y1: place.base + 23, y2: place.base + 23 }));
  }
  if (item.usual) {
    found.push(shape("line", { class: "usual", x1: left, x2: right, y1: y(item.usual), y2: y(item.usual) }));
  }
  for (const { value } of item.targets) {
    found.push(shape("line", { class: "target", x1: left, x2: right, y1: y(value), y2: y(value) }));
  }
  if (item.past) {
    found.push(...pathsOf(item.past.values, (i) => x(item.past.starts[i]), y, "line past"));
  }
  item.lines.forEach((line, i) => {
    const kind = `line style-${i % STYLES}${i === place.focus ? "" : " thin"}`;
    const values = settled(line, item);
    found.push(...pathsOf(values, (at) => x(item.starts[at]), y, kind));
    const isDrawn = (value) => value >= place.axis.bottom && value <= place.axis.top;
    const dots = coming(line, item).filter(isDrawn);
    found.push(...dots.map((value) => shape("circle", { class: `${kind} coming`, cx: right, cy: y(value), r: 3 })));
  });
  const ends = item.lines.map((line) => ({ title: line.title, values: settled(line, item) }));
  return place.hasNames ? [...found, ...namesOf(ends, place)] : found;
}

function timeLabels(item, place) {
  const { x, base, left, right, from, until } = place;
  return timeTicks(from, until, right - left).map(({ ms, text }) => {
    const at = x(ms);
    const anchor = at < left + 20 ? "start" : at > right - 20 ? "end" : "middle";
    return shape("text", { class: "tick-x", x: at, y: base + 17, "text-anchor": anchor }, text);
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

/** The band of the chosen line, which fades where it goes on above the axis; of a point alone an
 * upright line. */
function bandsOf({ lower, upper }, item, { x, y, axis, isOver }, style) {
  const name = `around style-${style % STYLES}`;
  const { starts } = item;
  const found = isOver ? [fadeOf(y(axis.top), `style-${style % STYLES}`)] : [];
  const drawn = runs(settled({ values: lower }, item)).map((run) => {
    if (run.length === 1) {
      const [i] = run;
      const across = { x: x(starts[i]) - 2, width: 4 };
      return shape("rect", { class: name, ...across, y: y(upper[i]), height: Math.max(1, y(lower[i]) - y(upper[i])) });
    }
    const above = run.map((i) => `${x(starts[i])},${y(upper[i])}`);
    const below = run.map((i) => `${x(starts[i])},${y(lower[i])}`).reverse();
    return shape("polygon", { class: name, points: [...above, ...below].join(" ") });
  });
  drawn.forEach((each) => found.forEach(({ id }) => (each.style.fill = `url(#${id})`)));
  return [...found, ...drawn];
}

/** The colour of a style that begins at a height with nothing. */
function fadeOf(top, style) {
  fades += 1;
  const across = { id: `fade-${fades}`, class: style, gradientUnits: "userSpaceOnUse", x1: 0, x2: 0, y1: top, y2: top + FADE };
  const stops = [0, 1].map((at) => shape("stop", { offset: at, "stop-opacity": at }));
  return shape("linearGradient", across, ...stops);
}

function pathsOf(values, x, y, name) {
  return runs(values).map((run) => {
    const points = run.map((i) => `${x(i)},${y(values[i])}`);
    return run.length > 1
      ? shape("polyline", { class: name, points: points.join(" ") })
      : shape("circle", { class: `${name} dot`, cx: x(run[0]), cy: y(values[run[0]]), r: 3 });
  });
}

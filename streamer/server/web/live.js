// Live windows: which window, split by what, of which values; the choice is part of the address.

import { readAlerts } from "./alert_history.js";
import { MoreMetrics } from "./all_metrics.js";
import { get } from "./api.js";
import { COLUMNS, PREFIX, hrefOf } from "./columns.js";
import { comparedWith } from "./comparisons.js";
import { byId, element, keep, setAttribute, setNote, setOptions } from "./dom.js";
import { Filters } from "./filters.js";
import { setTitle } from "./firing.js";
import { capital, last, lastWithTimes, windowMs } from "./format.js";
import { CLICKS, Course, middling, pointsFor } from "./metric_history.js";
import { showTable } from "./segment_table.js";
import { ROLLUP, queryOf, segmentsOf } from "./segments.js";
import { Shape } from "./shape.js";
import { Tiles } from "./tiles.js";
import { chosen, remember } from "./url_state.js";

const TOGETHER = "-";
const CONTEXT = 7;
const COURSE_MS = 15_000; // like alerts: a course moves by a sixtieth of its window
const PLAIN = COLUMNS.find((column) => column.name === `${PREFIX}ctr_ratio`);

/** The section of live windows. `onChange` is called when another window or split is chosen. */
export class LiveWindows {
  #shape;
  #more = new MoreMetrics();
  #course = new Course(byId("course-body"), (range) => this.#choose(range));
  #courseDueMs = 0;
  #tiles = new Tiles((name) => this.#choose({ course: name }));
  #wanted = chosen();
  #filters;
  #onChange;

  constructor(onChange) {
    this.#onChange = onChange;
    this.#shape = new Shape(onChange);
    this.#filters = new Filters(byId("filters"), (part) => this.#choose(narrowed(part)));
    for (const id of ["windows", "split", "course-metric"]) {
      const name = { windows: "window", "course-metric": "course" }[id] ?? id;
      byId(id).addEventListener("change", (event) => this.#choose({ [name]: event.target.value }));
    }
    byId("segments").tHead.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) {
        this.#choose({ sort: sortAfter(this.#wanted.sort, button.value) });
      }
    });
  }

  #choose(part) {
    Object.assign(this.#wanted, part);
    remember(part);
    this.#courseDueMs = 0;
    byId("segments-panel").classList.add("old");
    this.#onChange();
  }

  /** Read and show the chosen window. */
  async refresh(health, signal) {
    const { dimensions, windows } = health;
    const { alerts, firing = [] } = await readAlerts(signal);
    const { default_view: view } = health;
    const window = windows.includes(this.#wanted.window) ? this.#wanted.window : view.window;
    const splits = splitsOf(dimensions);
    const bySplit = (value) => splits.find((each) => each.value === value);
    const split = bySplit(this.#wanted.split) ?? bySplit(view.split.join(",")) ?? splits.at(1) ?? splits[0];
    this.#showControls(windows, window, splits, split);
    setNote(byId("choice-missing"), missing(this.#wanted, window, split));
    const where = this.#where(dimensions, split);
    const query = queryOf(window, split.dimensions, dimensions, where);
    const { readings } = await this.#readings(query, where, signal);
    await this.#filters.learn(window, dimensions, signal);
    this.#filters.show(dimensions.filter((name) => !split.dimensions.includes(name)), where);
    const found = segmentsOf(readings, split.dimensions, dimensions);
    const choice = { window, split: split.dimensions, dimensions, where, windows, streamMs: health.stream_time_ms };
    const compared = await comparedWith(alerts, choice, signal);
    if (compared?.title === "Usual" && firing.length && this.#wanted.sort === undefined) {
      this.#wanted.sort = "change";
    }
    this.#show(found, window, split, health, where, compared);
    await this.#tiles.refresh(choice, PREFIX + (this.#wanted.course ?? "ctr_ratio"), alerts, signal);
    await this.#shape.refresh(choice, signal);
    const startedMs = performance.now();
    if (found.segments.length && startedMs >= this.#courseDueMs) {
      await this.#showCourse(found, choice, split, alerts, signal);
      this.#courseDueMs = startedMs + COURSE_MS - 1000;
    }
  }

  /** Readings; none where a value of the address is not there, which is said. */
  async #readings(query, where, signal) {
    try {
      return await get(`api/readings?${query}`, signal);
    } catch (failure) {
      if (failure.status !== 400 || !Object.keys(where).length) {
        throw failure;
      }
      setNote(byId("choice-missing"), `${failure.message}.`);
      return { readings: [] };
    }
  }

  #where(dimensions, split) {
    const names = dimensions.filter((name) => !split.dimensions.includes(name));
    const pairs = names.map((name) => [name, this.#wanted[name] || ROLLUP]);
    return Object.fromEntries(pairs.filter(([, value]) => value !== ROLLUP));
  }

  #showControls(windows, window, splits, split) {
    const root = byId("windows").querySelector(".options");
    const options = windows.map((label) => ({ label, isChosen: label === window }));
    keep(root, options, (option) => option.label, radioView);
    setOptions(byId("split"), splits, split.value);
  }

  #show(found, window, split, health, where, compared) {
    const isEmpty = !found.segments.length;
    byId("no-events").hidden = health.stream_time_ms > 0 || !isEmpty;
    const why = isEmpty && health.stream_time_ms > 0 ? emptiness(found, window, split, where) : "";
    setNote(byId("no-segments"), why);
    byId("tiles").hidden ||= isEmpty;
    const panel = byId("segments-panel");
    panel.hidden = isEmpty;
    panel.classList.remove("old");
    const of = Object.entries(where).map(([name, value]) => `, ${name} ${value}`).join("");
    const by = split.dimensions.length ? `, by ${split.text}` : "";
    const choice = { window, split: split.value, ...where };
    const options = { caption: `${capital(lastWithTimes(window))}${of}${by}`, sort: this.#wanted.sort, choice, compared };
    showTable(found, split.dimensions.join(", ") || "segment", options);
    const every = found.whole ? [...found.segments, found.whole] : found.segments;
    this.#more.show(every, choice);
    setTitle(`streamer: ${window} by ${split.text}`);
  }

  async #showCourse(found, { window, where, windows, streamMs }, split, alerts, signal) {
    const offered = COLUMNS.filter((column) => !column.isOfUsers);
    const column = offered.find(({ name }) => name === PREFIX + this.#wanted.course) ?? PLAIN;
    const options = offered.map(({ name, title }) => ({ value: name.replace(PREFIX, ""), text: title }));
    setOptions(byId("course-metric"), options, column.name.replace(PREFIX, ""));
    const link = byId("course-link");
    setAttribute(link, "href", hrefOf(column.name, column.labels, { window, split: split.value, ...where }));
    const { from, until } = this.#wanted;
    const part = from && until ? { from_ms: from, until_ms: until } : {};
    const shown = shownWindow(windows, window, from ? streamMs - from : 0);
    const query = new URLSearchParams({ name: column.name, window: shown, ...where, ...column.labels, ...part });
    const clicks = middling(found.segments.map((s) => s.value(CLICKS) ?? 0));
    const times = shown === window ? 1 : windowMs(shown) / windowMs(window);
    query.set("points", pointsFor(clicks * times));
    const dimension = split.dimensions.at(0);
    if (dimension !== undefined) {
      query.set("split", dimension);
    }
    await this.#course.refresh(query, dimension, { alerts, window, windows }, signal);
  }
}

/** The window of the course: seven times as long as the chosen one at least, for what came before is
 * needed to judge that; of a range that began so many ms ago the shortest that reaches back to it. */
function shownWindow(windows, window, ago) {
  const least = ago || CONTEXT * windowMs(window);
  return windows.find((each) => windowMs(each) >= least) ?? windows.at(-1);
}

/** A filter, with "" where it is none: it leaves the address. */
function narrowed(part) {
  return Object.fromEntries(Object.entries(part).map(([k, v]) => [k, v === ROLLUP ? "" : v]));
}

/** A column is sorted from its largest value on, then from its smallest, then as before. */
function sortAfter(sort, name) {
  if (sort === `-${name}`) {
    return name;
  }
  return sort === name ? "" : `-${name}`;
}

/** What the address asks for and the settings do not have; "" where all is there. */
function missing(wanted, window, split) {
  const found = [];
  if (wanted.window && wanted.window !== window) {
    found.push(`The settings have no window ${wanted.window}: ${window} is shown.`);
  }
  if (wanted.split && wanted.split !== split.value) {
    found.push(`There is no split by ${wanted.split}: the split by ${split.text} is shown.`);
  }
  const names = ["change", "then", ...COLUMNS.map((column) => column.name.replace(PREFIX, ""))];
  if (wanted.sort && !names.includes(wanted.sort.replace(/^-/, ""))) {
    found.push(`There is no column ${wanted.sort} to sort by.`);
  }
  return found.join(" ");
}

/** All together, each dimension by itself, all dimensions at once. */
function splitsOf(dimensions) {
  const each = dimensions.map((name) => ({ value: name, text: name, dimensions: [name] }));
  const every = { value: dimensions.join(","), text: dimensions.join(" and "), dimensions };
  return [
    { value: TOGETHER, text: "nothing (all together)", dimensions: [] },
    ...each,
    ...(dimensions.length > 1 ? [every] : []),
  ];
}

function emptiness(found, window, split, where) {
  const names = [...split.dimensions, ...Object.keys(where)];
  if (found.whole || (names.length > 1 && Object.keys(where).length)) {
    const asked = `[${names.map((name) => `"${name}"`).join(", ")}]`;
    return `There is no split by ${names.join(" and ")}: add ${asked} to metrics.rollups in the settings.`;
  }
  const longer = "Choose a longer window, or check whether events still arrive.";
  return `No events in ${last(window)}. ${longer}`;
}

function radioView({ label }) {
  const input = element("input", { type: "radio", name: "window", value: label });
  const root = element("label", {}, input, element("span", {}, label));
  return {
    root,
    update({ isChosen }) {
      input.checked = isChosen;
    },
  };
}

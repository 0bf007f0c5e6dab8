// Live windows: which window, split by what; the choice is part of the address.

import { get } from "./api.js";
import { byId, element, keep, setNote, setOptions } from "./dom.js";
import { Calibration } from "./calibration.js";
import { MoreMetrics } from "./more.js";
import { queryOf, segmentsOf } from "./segments.js";
import { showTable } from "./table.js";

const TOGETHER = "-";

/** The section of live windows. `onChange` is called when another window or split is chosen. */
export class LiveWindows {
  #calibration = new Calibration();
  #more = new MoreMetrics();
  #wanted = choiceOf(new URLSearchParams(location.search));
  #shown = "";

  constructor(onChange) {
    const choose = (part) => {
      Object.assign(this.#wanted, part);
      remember(this.#wanted);
      byId("segments-panel").classList.add("old");
      onChange();
    };
    byId("windows").addEventListener("change", (event) => choose({ window: event.target.value }));
    byId("split").addEventListener("change", (event) => choose({ split: event.target.value }));
  }

  /** Read and show the chosen window. */
  async refresh(health, signal) {
    const { dimensions, windows } = health;
    const window = windows.includes(this.#wanted.window) ? this.#wanted.window : windows.at(-1);
    const splits = splitsOf(dimensions);
    const split = splits.find((s) => s.value === this.#wanted.split) ?? splits.at(1) ?? splits[0];
    this.#showControls(windows, window, splits, split);
    setNote(byId("choice-missing"), missing(this.#wanted, window, split));
    const query = queryOf(window, split.dimensions, dimensions);
    const { readings } = await get(`api/readings?${query}`, signal);
    const found = segmentsOf(readings, split.dimensions, dimensions);
    this.#show(found, window, split, health);
  }

  #showControls(windows, window, splits, split) {
    const root = byId("windows").querySelector(".options");
    const options = windows.map((label) => ({ label, isChosen: label === window }));
    keep(root, options, (option) => option.label, radioView);
    setOptions(byId("split"), splits, split.value);
  }

  #show(found, window, split, health) {
    const isEmpty = !found.segments.length;
    byId("no-events").hidden = health.stream_time_ms > 0;
    const why = isEmpty && health.stream_time_ms > 0 ? emptiness(found, window, split) : "";
    setNote(byId("no-segments"), why);
    const panel = byId("segments-panel");
    panel.hidden = isEmpty;
    panel.classList.remove("old");
    const caption = `The last ${window}${split.dimensions.length ? `, by ${split.text}` : ""}`;
    showTable(found, split.dimensions.join(", ") || "segment", caption);
    const every = found.whole ? [...found.segments, found.whole] : found.segments;
    this.#calibration.show(every);
    this.#more.show(every);
    this.#announce(window, split);
  }

  /** The title of the page says what is shown, so that links and tabs can be told apart. */
  #announce(window, split) {
    const text = `${window} by ${split.text}`;
    if (text !== this.#shown) {
      this.#shown = text;
      document.title = `streamer: ${text}`;
    }
  }
}

/** What the address asks for and the settings do not have; "" where all is there. */
function missing(wanted, window, split) {
  const found = [];
  if (wanted.window !== null && wanted.window !== window) {
    found.push(`The settings have no window ${wanted.window}; this is ${window}.`);
  }
  if (wanted.split !== null && wanted.split !== split.value) {
    found.push(`There is no split by ${wanted.split}; this is by ${split.text}.`);
  }
  return found.join(" ");
}

function choiceOf(query) {
  return { window: query.get("window"), split: query.get("split") };
}

function remember(choice) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(choice)) {
    if (value !== null) {
      url.searchParams.set(name, value);
    }
  }
  history.replaceState(null, "", url);
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

function emptiness(found, window, split) {
  if (found.whole) {
    const asked = `[${split.dimensions.map((name) => `"${name}"`).join(", ")}]`;
    return `There is no split by ${split.text}: add ${asked} to metrics.rollups in the settings.`;
  }
  const longer = "Choose a longer window, or check whether events still arrive.";
  return `No events in the last ${window}. ${longer}`;
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

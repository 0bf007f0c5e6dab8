// All other readings of one segment, with a search.

import { byId, element, keep, setOptions, setText } from "./dom.js";
import * as format from "./format.js";
import { COLUMNS, PREFIX } from "./columns.js";

/** The disclosure below the table; it is filled while it is open. */
export class MoreMetrics {
  #segments = [];
  #chosen = "";

  constructor() {
    const draw = () => this.#draw();
    byId("more").addEventListener("toggle", draw);
    byId("more-search").addEventListener("input", draw);
    byId("more-segment").addEventListener("change", () => {
      this.#chosen = byId("more-segment").value;
      draw();
    });
  }

  /** Offer these segments; the chosen one stays chosen while it is there. */
  show(segments) {
    this.#segments = segments;
    this.#draw();
  }

  #draw() {
    if (!byId("more").open || !this.#segments.length) {
      return;
    }
    const segment = this.#segments.find((s) => s.key === this.#chosen) ?? this.#segments[0];
    const options = this.#segments.map((s) => ({ value: s.key, text: s.title }));
    setOptions(byId("more-segment"), options, segment.key);
    const table = byId("more-table");
    const others = segment.readings.filter((reading) => !isColumn(reading));
    const found = others.filter(matching(byId("more-search").value));
    const total = format.counted(others.length, "metric");
    setText(table.caption, `${format.count(found.length)} of ${total} of ${segment.title}`);
    keep(table.tBodies[0], found, (reading) => reading.key, rowView);
  }
}

function isColumn({ key }) {
  return COLUMN_KEYS.has(key);
}

const COLUMN_KEYS = new Set(
  COLUMNS.map((c) => JSON.stringify([c.name, ...Object.entries(c.labels).sort()])),
);

/** Whether every word of a search is part of the name or of a label. */
function matching(search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return (reading) => {
    const text = `${reading.name} ${labelsOf(reading)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

function labelsOf({ labels }) {
  return Object.entries(labels).map((pair) => pair.join("=")).join(" ");
}

function rowView(reading) {
  const value = element("td", { class: "number" });
  const name = reading.name.replace(PREFIX, "");
  const title = element("th", { scope: "row" }, name);
  const root = element("tr", {}, title, element("td", {}, labelsOf(reading)), value);
  return { root, update: (now) => setText(value, format.exact(now.value)) };
}

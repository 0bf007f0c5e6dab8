// All other readings of one segment by family, with units, help and a search.

import { get } from "./api.js";
import { COLUMNS, PREFIX, hrefOf } from "./columns.js";
import { breakable, byId, element, isLong, keep, setAttribute, setNote, setOptions, setText } from "./dom.js";
import * as format from "./format.js";

/** The disclosure below the table; it is filled while it is open. */
export class MoreMetrics {
  #segments = [];
  #chosen = "";
  #choice = {};
  #known = null;

  constructor() {
    const draw = () => this.#draw();
    byId("more").addEventListener("toggle", () => this.#learn());
    byId("more-search").addEventListener("input", draw);
    byId("more-segment").addEventListener("change", () => {
      this.#chosen = byId("more-segment").value;
      draw();
    });
  }

  /** Offer these segments; the chosen one stays chosen while it is there. `choice`: what links to
   * metrics carry. */
  show(segments, choice) {
    this.#segments = segments;
    this.#choice = choice;
    this.#draw();
  }

  /** What metrics mean, asked for once. */
  async #learn() {
    this.#draw();
    if (byId("more").open && this.#known === null) {
      const { metrics } = await get("api/metrics", AbortSignal.timeout(10_000)).catch(() => ({ metrics: [] }));
      this.#known = new Map(metrics.map((each, at) => [each.name, { ...each, at }]));
      this.#draw();
    }
  }

  #draw() {
    if (!byId("more").open || !this.#segments.length) {
      return;
    }
    const segment = this.#segments.find((s) => s.key === this.#chosen) ?? this.#segments[0];
    const options = this.#segments.map((s) => ({ value: s.key, text: s.title }));
    setOptions(byId("more-segment"), options, segment.key);
    const others = segment.readings.filter((reading) => !isColumn(reading));
    const found = others.filter(matching(byId("more-search").value)).map((r) => this.#described(r));
    const total = format.counted(others.length, "metric");
    const table = byId("more-table");
    setText(table.caption, `${format.count(found.length)} of ${total} of ${segment.title}`);
    const rows = [];
    for (const reading of found.toSorted((a, b) => a.at - b.at)) {
      if (rows.at(-1)?.family !== reading.family) {
        rows.push({ key: `family ${reading.family}`, family: reading.family, isFamily: true });
      }
      rows.push(reading);
    }
    keep(table.tBodies[0], rows, (row) => row.key, (row) => (row.isFamily ? familyView(row) : rowView(row)));
  }

  #described(reading) {
    const { family = "others", unit = "", about = "", at = 0 } = this.#known?.get(reading.name) ?? {};
    return { ...reading, family, unit, about, at, choice: this.#choice };
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

function familyView({ family }) {
  const header = element("th", { scope: "colgroup", role: "rowheader", colspan: "4" }, family.replace("_", " "));
  return { root: element("tr", { role: "row", class: "family" }, header), update() {} };
}

function rowView(reading) {
  const value = element("td", { role: "cell", class: "number" });
  const link = element("a", {}, ...breakable(reading.name.replace(PREFIX, "")));
  const about = element("span", { class: "interval", hidden: "" });
  const title = element("th", { scope: "row", role: "rowheader" }, link, about);
  const text = labelsOf(reading);
  const labels = element("td", { role: "cell", class: isLong(text) ? "long" : "" }, ...breakable(text));
  const unit = element("td", { role: "cell" });
  const root = element("tr", { role: "row" }, title, labels, value, unit);
  return {
    root,
    update(now) {
      setText(value, format.exact(now.value));
      if (unit.textContent !== now.unit) {
        unit.replaceChildren(...breakable(now.unit));
      }
      setNote(about, now.about);
      setAttribute(link, "href", hrefOf(now.name, now.labels, now.choice));
    },
  };
}

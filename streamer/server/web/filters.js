// A select for each dimension, which narrows what is shown to one of its values.

import { get } from "./api.js";
import { COLUMNS } from "./columns.js";
import { element, keep, setAttribute, setOptions, setText } from "./dom.js";
import { ROLLUP } from "./segments.js";

const EVERY_MS = 60_000;

/** The selects of `parent`; `onChange` gets {dimension: value}. */
export class Filters {
  #parent;
  #onChange;
  #known = new Map();
  #learnt = { window: "", dueMs: 0 };

  constructor(parent, onChange) {
    this.#parent = parent;
    this.#onChange = onChange;
  }

  /** Ask for the values of dimensions in a window: they can be chosen from now on. */
  async learn(window, dimensions, signal) {
    const startedMs = performance.now();
    if (this.#learnt.window === window && startedMs < this.#learnt.dueMs) {
      return;
    }
    const query = new URLSearchParams({ name: COLUMNS[0].name, window });
    const { readings } = await get(`api/readings?${query}`, signal);
    for (const { labels } of readings) {
      for (const name of dimensions) {
        const value = labels[name];
        if (value !== undefined && value !== ROLLUP) {
          this.#valuesOf(name).add(value);
        }
      }
    }
    this.#learnt = { window, dueMs: startedMs + EVERY_MS };
  }

  /** Offer the dimensions, with what is wanted of each; a value that is not known stays an option. */
  show(dimensions, wanted) {
    const items = dimensions.map((name) => ({ name, value: wanted[name] || ROLLUP }));
    keep(this.#parent, items, (item) => item.name, ({ name }) => this.#view(name));
  }

  #valuesOf(name) {
    if (!this.#known.has(name)) {
      this.#known.set(name, new Set());
    }
    return this.#known.get(name);
  }

  #view(name) {
    const select = element("select");
    const text = element("span");
    const root = element("label", { class: "field" }, text, " ", select);
    select.addEventListener("change", () => this.#onChange({ [name]: select.value }));
    return {
      root,
      update: ({ value }) => {
        setText(text, name);
        setAttribute(select, "name", name);
        const values = new Set([ROLLUP, ...[...this.#valuesOf(name)].sort(), value]);
        setOptions(select, [...values].map((each) => ({ value: each, text: each })), value);
      },
    };
  }
}

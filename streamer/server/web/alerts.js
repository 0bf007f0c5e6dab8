// The section of alerts: the status of every watched segment, and why a chosen one moved.

import { readHistories } from "./alert_history.js";
import { alertsOf, isWhole, showWatched } from "./alert_table.js";
import { Failure, get } from "./api.js";
import { showSplit } from "./contributions.js";
import { byId, setNote, setOptions } from "./dom.js";
import { chosen, remember } from "./url_state.js";

const EVERY_MS = 15_000;
const HASH = "#explain";

/** Alerts move by a sixth of their windows: they are read at every third look. `onChange` is called
 * when another one is chosen. */
export class Alerts {
  #dueMs = 0;
  #followed = false;
  #wanted = chosen().alert ?? null;

  constructor(onChange) {
    byId("explain-alert").addEventListener("change", (event) => {
      this.#wanted = event.target.value;
      remember({ alert: this.#wanted });
      this.#dueMs = 0;
      byId("why").classList.add("old");
      onChange();
    });
  }

  async refresh(health, signal) {
    const startedMs = performance.now();
    if (startedMs < this.#dueMs) {
      return;
    }
    const found = alertsOf(await get("api/alerts", signal));
    const isAny = found.entries.length > 0;
    byId("no-alerts").hidden = isAny;
    if (isAny) {
      showWatched(found);
      await this.#explain(found.entries, health.dimensions, signal);
    }
    byId("alerts-panel").hidden = !isAny;
    this.#dueMs = startedMs + EVERY_MS - 1000;
    await readHistories([...new Set(found.open.map((each) => each.alert))], signal);
    showWatched(found);
  }

  async #explain(alerts, dimensions, signal) {
    const names = [...new Set(alerts.map((each) => each.alert))];
    const isKnown = names.includes(this.#wanted);
    const name = isKnown ? this.#wanted : names[0];
    const options = names.map((each) => ({ value: each, text: each }));
    setOptions(byId("explain-alert"), options, name);
    const missing = `The settings have no alert ${this.#wanted}; this is ${name}.`;
    setNote(byId("why-missing"), isKnown || this.#wanted === null ? "" : missing);
    const whole = alerts.find((each) => each.alert === name && isWhole(each));
    try {
      const query = new URLSearchParams({ alert: name });
      showSplit(await get(`api/explain?${query}`, signal), whole, dimensions);
    } catch (failure) {
      if (!(failure instanceof Failure) || failure.status !== 404) {
        throw failure;
      }
      setNote(byId("why-note"), failure.message);
      byId("why-split").hidden = true;
    }
    byId("why").classList.remove("old");
  }

  /** Go here once all sections are there, where the address says so. */
  follow() {
    if (!this.#followed && location.hash === HASH) {
      byId("why-parts").open = true;
      byId("explain").scrollIntoView();
      byId("explain-title").focus({ preventScroll: true });
    }
    this.#followed = true;
  }
}

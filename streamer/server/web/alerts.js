// The section of alerts: the status of every watched segment, and why a chosen one moved.

import { nameOf, readAlerts, readHistories } from "./alert_history.js";
import { alertsOf, isWhole, showWatched } from "./alert_lines.js";
import { find } from "./api.js";
import { showSplit } from "./contributions.js";
import { byId, setNote, setOptions } from "./dom.js";
import { whyOf } from "./firing.js";
import * as format from "./format.js";
import { chosen, remember } from "./url_state.js";

const EVERY_MS = 15_000;
const HASH = "#explain";
const NONE = { choice: { alert: "", segment: "" }, value: "", text: "choose an alert" };

/** Alerts move by a sixth of their windows: they are read at every third look. `onChange` is called
 * when another one is chosen. */
export class Alerts {
  #dueMs = 0;
  #followed = false;
  #wanted = whyOfAddress();
  #offered = new Map();
  #onChange;

  constructor(onChange) {
    this.#onChange = onChange;
    byId("explain-alert").addEventListener("change", ({ target }) => this.#choose(this.#offered.get(target.value)));
  }

  #choose(wanted) {
    this.#wanted = wanted;
    remember(wanted);
    this.#dueMs = 0;
    byId("why").classList.add("old");
    this.#onChange();
  }

  /** Show why an alert's segment moved, and go there. */
  ask(firing) {
    this.#choose(whyOf(firing));
    history.replaceState(null, "", HASH);
    this.#goThere();
  }

  async refresh(health, signal) {
    const startedMs = performance.now();
    if (startedMs < this.#dueMs) {
      return;
    }
    const document = await readAlerts(signal);
    const found = alertsOf(document);
    const isAny = found.entries.length > 0;
    const declared = document.declared ?? [];
    byId("no-alerts").hidden = isAny || declared.length > 0;
    const waiting = `${format.counted(declared.length, "alert")} (${declared.join(", ")}), waiting for first events.`;
    setNote(byId("alerts-waiting"), !isAny && declared.length ? waiting : "");
    const firing = document.firing ?? [];
    if (isAny) {
      showWatched(found);
      await this.#explain(found.entries, firing, health.dimensions, signal);
    }
    byId("alerts-panel").hidden = !isAny;
    const said = `${firing.length || "None"} of ${format.counted(found.entries.length, "watched segment")}`;
    setNote(byId("alerts-answer"), isAny ? `${said} ${firing.length > 1 ? "fire" : "fires"}` : "");
    this.#dueMs = startedMs + EVERY_MS - 1000;
    await readHistories([...new Set([...firing, ...found.open, ...found.decided].map((each) => each.alert))], signal);
    showWatched(found);
  }

  /** Why the wanted segment moved; without a wish the first that fires, and nothing where none
   * does: what moved by chance has no cause. */
  async #explain(entries, firing, dimensions, signal) {
    const isAsked = this.#wanted.alert !== undefined;
    const none = isAsked || firing.length ? [] : [NONE];
    const options = [...none, ...optionsOf(entries, firing)];
    const [first] = firing.length ? firing.map(whyOf) : options.map((option) => option.choice);
    const wanted = isAsked ? this.#wanted : first;
    const choice = options.find((option) => isSame(option.choice, wanted))?.choice ?? first;
    this.#offered = new Map(options.map((option) => [option.value, option.choice]));
    setOptions(byId("explain-alert"), options, valueOf(choice));
    setNote(byId("why-missing"), missing(options, this.#wanted, choice));
    if (choice === NONE.choice) {
      setNote(byId("why-note"), "Nothing fires.");
      byId("why-split").hidden = byId("why-again").hidden = true;
      return;
    }
    const whole = entries.find((each) => each.alert === choice.alert && isWhole(each));
    const query = new URLSearchParams({ alert: choice.alert, ...(choice.segment ? { segment: choice.segment } : {}) });
    const explained = await find(`api/explain?${query}`, signal);
    if (explained.error === undefined) {
      showSplit(explained, whole, dimensions);
    } else {
      setNote(byId("why-note"), explained.error);
      byId("why-split").hidden = true;
    }
    byId("why").classList.remove("old");
  }

  /** Go here once all sections are there, where the address says so. */
  follow() {
    if (!this.#followed && location.hash === HASH) {
      this.#goThere();
    }
    this.#followed = true;
  }

  #goThere() {
    byId("explain").scrollIntoView();
    byId("explain-title").focus({ preventScroll: true });
  }
}

/** The alert and the segment that the address asks about. */
function whyOfAddress() {
  const { alert, segment = "" } = chosen();
  return alert === undefined ? {} : { alert, segment };
}

/** Each alert as a whole, and each segment that fires or was asked about. */
function optionsOf(entries, firing) {
  const wholes = [...new Set(entries.map((each) => each.alert))].map((alert) => ({ alert, segment: "", name: alert }));
  const fires = new Set(firing.map((each) => valueOf(whyOf(each))));
  const segments = entries
    .filter((each) => !isWhole(each))
    .map((each) => ({ ...whyOf(each), name: `${each.alert}: ${nameOf(each.segment)}` }));
  const options = [...wholes, ...segments].map(({ name, ...choice }) => {
    const value = valueOf(choice);
    return { choice, value, text: fires.has(value) ? `▼ ${name}` : name };
  });
  return options.sort((a, b) => fires.has(b.value) - fires.has(a.value));
}

function valueOf({ alert, segment }) {
  return segment ? `${alert} ${segment}` : alert;
}

function isSame(a, b) {
  return a.alert === b.alert && a.segment === b.segment;
}

/** What the address asks for and there is not; "" where it is there. */
function missing(options, wanted, choice) {
  if (wanted.alert === undefined || isSame(wanted, choice)) {
    return "";
  }
  const isKnown = options.some((option) => option.choice.alert === wanted.alert);
  const what = isKnown ? `${wanted.alert} has no segment ${wanted.segment}` : `The settings have no alert ${wanted.alert}`;
  return `${what}: ${choice.alert} is shown.`;
}

// The section of experiments, what needs a decision first: a card for each, of many for the first ones.

import { Failure, get } from "./api.js";
import { card, hashOf } from "./card.js";
import { byId, element, keep, setAttribute, setText } from "./dom.js";

const EVERY_MS = 15_000;
/** Of more experiments, cards are shown when they are asked for. */
const FIRST = 12;

/** An experiment moves slowly, and costs the exporter more: it is read at every third look. */
export class Experiments {
  #dueMs = 0;
  #followed = false;
  #only = "";
  #all = false;
  #experiments = [];

  constructor() {
    addEventListener("hashchange", () => this.#show().then(follow));
    byId("experiments-only").addEventListener("change", (event) => {
      this.#only = event.target.value;
      this.#show();
    });
    byId("experiments-all").addEventListener("click", () => {
      this.#all = true;
      this.#show();
    });
  }

  async refresh(health, signal) {
    const startedMs = performance.now();
    if (startedMs < this.#dueMs) {
      return;
    }
    const { experiments } = await get("api/experiments", signal);
    this.#experiments = experiments;
    byId("no-experiments").hidden = experiments.length > 0;
    this.#showLinks(experiments);
    await this.#show(signal);
    this.#dueMs = startedMs + EVERY_MS - 1000;
    if (!this.#followed) {
      this.#followed = true;
      follow();
    }
  }

  /** Show the cards, and read each experiment. */
  async #show(signal) {
    const cards = keep(byId("cards"), this.#chosen(this.#experiments), (e) => e.name, card);
    for (const [name, view] of cards) {
      await read(name, view, signal);
    }
  }

  /** Those of which there are cards: the first ones, and the one that the address names. */
  #chosen(experiments) {
    const wanted = experiments.filter((e) => !this.#only || e.needs === this.#only);
    const isShown = (e, i) => this.#all || i < FIRST || hashOf(e.name) === location.hash;
    const shown = wanted.filter(isShown);
    byId("experiments-choice").hidden = experiments.length <= FIRST;
    setText(byId("experiments-shown"), `${shown.length} of ${experiments.length} shown, what needs a decision first.`);
    byId("experiments-all").hidden = shown.length === wanted.length;
    return shown;
  }

  #showLinks(experiments) {
    const nav = byId("experiments-nav");
    nav.hidden = experiments.length < 2;
    keep(nav.firstElementChild, experiments, (e) => e.name, linkView);
  }
}

async function read(name, view, signal) {
  try {
    view.show(await get(`api/experiments/${encodeURIComponent(name)}`, signal));
  } catch (failure) {
    if (!(failure instanceof Failure) || failure.status !== 404) {
      throw failure;
    }
    view.fail(failure.message);
  }
}

/** Go to the experiment that the address names. */
function follow() {
  for (const each of byId("cards").children) {
    if (hashOf(each.dataset.name) === location.hash) {
      each.querySelector(".fold").open = true;
      each.scrollIntoView();
      each.querySelector("h3 a").focus({ preventScroll: true });
    }
  }
}

function linkView() {
  const link = element("a");
  return {
    root: element("li", {}, link),
    update({ name }) {
      setAttribute(link, "href", hashOf(name));
      setText(link, name);
    },
  };
}

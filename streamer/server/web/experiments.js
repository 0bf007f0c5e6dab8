// The section of experiments: a card for each one of the settings.

import { Failure, get } from "./api.js";
import { card, hashOf } from "./card.js";
import { byId, element, keep, setAttribute, setText } from "./dom.js";

const EVERY_MS = 15_000;

/** An experiment moves slowly, and costs the exporter more: it is read at every third look. */
export class Experiments {
  #dueMs = 0;
  #followed = false;

  constructor() {
    addEventListener("hashchange", follow);
  }

  async refresh(health, signal) {
    const startedMs = performance.now();
    if (startedMs < this.#dueMs) {
      return;
    }
    const { experiments } = await get("api/experiments", signal);
    byId("no-experiments").hidden = experiments.length > 0;
    this.#showLinks(experiments);
    const cards = keep(byId("cards"), experiments, (e) => e.name, card);
    for (const [name, view] of cards) {
      await read(name, view, signal);
    }
    this.#dueMs = startedMs + EVERY_MS - 1000;
    if (!this.#followed) {
      this.#followed = true;
      follow();
    }
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

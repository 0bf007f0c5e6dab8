// The page: asks again and again, while somebody looks.

import { Alerts } from "./alerts.js";
import { get } from "./api.js";
import { byId } from "./dom.js";
import { Experiments } from "./experiments.js";
import { Firing, whyOf } from "./firing.js";
import { learnSpans } from "./format.js";
import { Header, Vitals } from "./health.js";
import { LiveWindows } from "./live.js";
import { MetricPage } from "./metric.js";
import { chosen } from "./url_state.js";
import { WhatWasRead } from "./what_was_read.js";

const EVERY_MS = 5000;

const header = new Header();
const isOfMetric = "metric" in chosen();
const alerts = isOfMetric ? null : new Alerts(() => look());
const firing = new Firing((asked) => {
  if (alerts === null) {
    location.assign(`?${new URLSearchParams(whyOf(asked))}#explain`);
  } else {
    alerts.ask(asked);
  }
});
const sections = isOfMetric
  ? [firing, new MetricPage(() => look())]
  : [firing, new Vitals(), new LiveWindows(() => look()), new Experiments(), alerts, new WhatWasRead()];
for (const section of byId("main").querySelectorAll("section")) {
  section.hidden = (section.id === "metric") !== isOfMetric;
}
let isPaused = false;
let timer = 0;
let running = new AbortController();

/** Read everything once, in place of a reading that is under way, and plan the next time. */
async function look() {
  running.abort();
  clearTimeout(timer);
  const mine = new AbortController();
  running = mine;
  const startedMs = performance.now();
  try {
    const health = await get("api/health", mine.signal);
    learnSpans(health.window_spans);
    header.show(health);
    for (const section of sections) {
      await section.refresh(health, mine.signal);
    }
    document.body.classList.remove("loading", "waiting");
    sections.forEach((section) => section.follow?.());
    await firing.settle(mine.signal);
    header.fresh();
  } catch (failure) {
    if (mine.signal.aborted) {
      return;
    }
    header.fail(failure);
    document.body.classList.replace("loading", "waiting");
  }
  header.pause(isPaused);
  if (!isPaused && !document.hidden) {
    timer = setTimeout(look, Math.max(1000, EVERY_MS - (performance.now() - startedMs)));
  }
}

function rest() {
  running.abort();
  clearTimeout(timer);
}

byId("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  if (isPaused) {
    rest();
    header.pause(true);
  } else {
    header.pause(false);
    look();
  }
});

byId("copy-link").addEventListener("click", async ({ target }) => {
  try {
    await navigator.clipboard.writeText(location.href);
    target.textContent = "Copied";
  } catch {
    target.textContent = "Copy the address"; // the browser does not let pages copy here
  }
  setTimeout(() => (target.textContent = "Copy link"), 2000);
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    rest();
  } else if (!isPaused) {
    look();
  }
});

look();

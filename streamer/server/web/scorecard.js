// The page of an experiment is made by the exporter. It is loaded again while somebody looks at it,
// unless something is unfolded or updates are paused; the header is kept up to date.

import { readAlerts } from "./alert_history.js";
import { get } from "./api.js";
import { byId } from "./dom.js";
import { Header } from "./health.js";
import { countAlerts, countExperiments } from "./navigation.js";

const [EVERY_MS, HEADER_MS] = [60_000, 15_000];
const header = new Header();
const { signal } = new AbortController();
let isPaused = false;

async function look() {
  try {
    header.show(await get("api/health", signal));
    countAlerts(await readAlerts(signal));
    countExperiments((await get("api/experiments", signal)).needs);
    header.fresh();
  } catch (failure) {
    header.fail(failure);
  }
}

byId("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  header.pause(isPaused);
});
setInterval(() => !document.hidden && !isPaused && look(), HEADER_MS);
setInterval(() => {
  if (!document.hidden && !isPaused && !document.querySelector("details[open]")) {
    location.reload();
  }
}, EVERY_MS);
look();

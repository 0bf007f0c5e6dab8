// The page of an experiment is made by the exporter. It is loaded again while somebody looks at it,
// unless something is unfolded.

const EVERY_MS = 60_000;

setInterval(() => {
  if (!document.hidden && !document.querySelector("details[open]")) {
    location.reload();
  }
}, EVERY_MS);

// The JSON API of the exporter that served this page.

const TIMEOUT_MS = 10_000;
const ROOT = new URL("..", import.meta.url).pathname;

/** What kept us from an answer: `who` is "store" or "exporter", `status` that of HTTP or 0. */
export class Failure extends Error {
  constructor(who, text, status = 0) {
    super(text);
    this.who = who;
    this.status = status;
  }
}

/** The document at a path. Throws Failure, or AbortError where `signal` fired. */
export async function get(path, signal) {
  const answer = await answerOf(path, signal);
  const document = await answer.json().catch(() => {
    signal.throwIfAborted();
    return null;
  });
  if (answer.status === 503) {
    throw new Failure("store", document?.error ?? "it does not say why", 503);
  }
  if (!answer.ok || document === null) {
    throw new Failure("exporter", document?.error ?? `it answered ${answer.status}`, answer.status);
  }
  return document;
}

/** The same; what there is not is {error, lines: []}. */
export async function find(path, signal) {
  try {
    return await get(path, signal);
  } catch (failure) {
    if (failure instanceof Failure && [400, 404].includes(failure.status)) {
      return { error: failure.message, lines: [] };
    }
    throw failure;
  }
}

async function answerOf(path, signal) {
  const late = AbortSignal.timeout(TIMEOUT_MS);
  const url = new URL(ROOT + path, location.href); // without the password that may be in the address
  try {
    return await fetch(url, { signal: AbortSignal.any([signal, late]), cache: "no-store" });
  } catch {
    signal.throwIfAborted();
    const text = late.aborted ? `no answer within ${TIMEOUT_MS / 1000} s` : "it does not answer";
    throw new Failure("exporter", text);
  }
}

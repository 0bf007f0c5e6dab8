// The header: the state of the processor in words, and how old the values are.

import { Failure } from "./api.js";
import { byId, element, keep, setAttribute, setNote, setText } from "./dom.js";
import * as format from "./format.js";
import { countHealth } from "./navigation.js";

const QUIET_SECONDS = 60;
const OLD_SECONDS = 300;
const BEHIND_SECONDS = 5;
const MANY_RECORDS = 1000; // where nobody knows yet how fast records are read

/** Whole seconds from the newest event to now, by the clock of the store; 0 without events, and of
 * files, which are as old as they are. */
export function age(health) {
  const isLive = health.stream_time_ms && !health.files.length;
  const ms = isLive ? health.now_ms - health.stream_time_ms : 0;
  return Math.max(0, Math.floor(ms / 1000));
}

/** Whether what is shown is so old that nobody should take it for the present. */
export function isOld(health) {
  return age(health) > OLD_SECONDS;
}

/** What a document of /api/health says: the state (a class of the line), its word, and the rest. */
export function verdict(health) {
  const behind = Object.values(health.lag_records).reduce((sum, lag) => sum + (lag ?? 0), 0);
  const [first, ...others] = health.problems;
  if (health.files.length) {
    const [name, ...more] = health.files;
    return [health.silent?.length ? "busy" : "live", "File", `: ${name}${more.length ? ` and ${more.length} more` : ""}`];
  }
  if (health.stream_time_ms && !health.workers.some((worker) => worker.is_present)) {
    return ["bad", "Stopped", ": no worker is running"];
  }
  if (!health.is_ready) {
    const more = others.length ? ` (and ${others.length} more)` : "";
    return ["bad", "Not ready", `: ${first ?? "no reason is given"}${more}`];
  }
  if (!health.stream_time_ms) {
    const isWorking = health.workers.some((worker) => worker.is_present);
    return ["waiting", ...(isWorking ? ["Ready", ": no events yet"] : ["Waiting", ": no worker has reported yet"])];
  }
  if (behind > 0) {
    const seconds = health.behind_seconds ?? null;
    if (seconds > BEHIND_SECONDS || (seconds === null && behind >= MANY_RECORDS)) {
      const time = seconds === null ? ":" : ` ${format.span(seconds)}:`;
      return ["busy", "Behind", `${time} ${format.counted(behind, "record")} wait${behind === 1 ? "s" : ""}`];
    }
  }
  const quiet = age(health);
  const ago = `the last event ${format.span(quiet)} ago`;
  if (isOld(health)) {
    return ["waiting", "No new events", `, ${ago}`];
  }
  const [silent, ...more] = health.silent ?? [];
  if (silent) {
    const others = more.length ? ` (and ${more.length} more)` : "";
    return ["busy", silent.what === "clicks" ? "Clicks are missing" : "Events are missing", `: ${silent.text}${others}`];
  }
  return ["live", "Up to date", quiet > QUIET_SECONDS ? `, ${ago}` : ""];
}

/** What readers of the numbers should know besides. */
export function remarks(health) {
  const found = (health.silent ?? []).map((silent) => `${silent.text}.`);
  found.push(...health.problems.map((text) => `Not ready: ${text}.`));
  found.push(...health.warnings.map((text) => `Not everything is counted: ${text}.`));
  const others = health.inexact.filter((each) => each.cause !== "unread_topics" || !found.length);
  found.push(...others.map((each) => each.text));
  if (health.users_behind_seconds > QUIET_SECONDS) {
    const behind = format.span(health.users_behind_seconds);
    found.push(`User metrics are ${behind} behind the others.`);
  }
  return found.join(" ");
}

/** The header, which shows one of a document, a failure, or that updates are paused. */
export class Header {
  #seenMs = 0;
  #oldNote = "";

  show(health) {
    this.#seenMs = Date.now();
    const [state, words, rest] = verdict(health);
    this.#say(state, words, rest);
    const isSaid = state === "live" || state === "waiting" || health.problems.length || health.silent?.length;
    const isPast = isOld(health);
    const when = isPast ? `as of ${format.clock(health.stream_time_ms)}` : "";
    this.#oldNote = isPast ? `Values ${when}, ${format.span(age(health))} ago.` : "";
    document.body.classList.toggle("past", isPast);
    byId("pause").hidden = health.files.length > 0;
    setNote(byId("about"), health.about);
    byId("about-link").hidden = !health.about;
    setNote(byId("health-note"), (isSaid ? "" : `${words}${rest}. `) + remarks(health));
    const time = byId("stream-time");
    if (health.stream_time_ms) {
      setAttribute(time, "datetime", new Date(health.stream_time_ms).toISOString());
      setText(time, `${format.moment(health.stream_time_ms)} UTC`);
    }
  }

  /** All that was asked for has come. */
  fresh() {
    document.body.classList.remove("stale");
    setNote(byId("as-of"), this.#oldNote);
  }

  fail(failure) {
    const isOurs = !(failure instanceof Failure);
    const words = isOurs ? "Error in this page" : `Cannot reach the ${failure.who}`;
    this.#say("bad", words, `: ${failure.message}`);
    setNote(byId("health-note"), `${words}: ${failure.message}.`);
    document.body.classList.add("stale");
    setNote(byId("as-of"), this.#seenMs ? `Values as of ${this.#age()}.` : "");
  }

  pause(isPaused) {
    setText(byId("pause"), isPaused ? "Resume" : "Pause");
    setAttribute(byId("pause"), "aria-label", `${isPaused ? "Resume" : "Pause"} updates`);
    if (isPaused) {
      setNote(byId("as-of"), `Updates are paused. Values as of ${this.#age()}.`);
    }
  }

  #age() {
    return this.#seenMs ? format.clock(this.#seenMs) : "never";
  }

  #say(state, words, rest) {
    countHealth(state);
    setAttribute(byId("health"), "data-state", state);
    setText(byId("health-state"), words);
    setText(byId("health-detail"), rest);
    setAttribute(byId("health"), "title", words + rest);
  }
}

/** The section of the pipeline, and what else of the page it decides. */
export class Vitals {
  refresh(health) {
    const live = health.files.length ? "Windows at the end of the file" : "Live windows";
    setText(byId("live-title"), isOld(health) ? `Windows as of ${format.clock(health.stream_time_ms)}` : live);
    setAttribute(byId("worker-step"), "data-done", String(health.workers.some((worker) => worker.is_present)));
    setAttribute(byId("topics-step"), "data-done", String(Object.keys(health.lag_records).length > 0));
    const [, words, rest] = verdict(health);
    setText(byId("pipeline-answer"), words + rest);
    keep(byId("pipeline-items"), health.pipeline, ({ title }) => title, vitalView);
  }
}

function vitalView({ title }) {
  const [text, note] = [element("span"), element("small")];
  const root = element("div", {}, element("dt", {}, title), element("dd", {}, text, " ", note));
  return {
    root,
    update(item) {
      setText(text, `${item.is_fine ? "" : "▽ "}${item.text}`);
      setAttribute(text, "data-kind", item.is_fine ? "open" : "warn");
      setText(note, item.bound);
    },
  };
}

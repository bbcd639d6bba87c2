// The shell's script: it shows what belongs to the page's path, and keeps it as it is in the daemon.

import { armActs } from "./act.js";
import { armBatch, keepOutcome } from "./batch.js";
import { armCopies } from "./copy.js";
import { count } from "./countdown.js";
import { armDecision, outdate, rearm } from "./decide.js";
import { armEditor, armTry, unsaved } from "./editor.js";
import { armFront } from "./front.js";
import { begin, waitForWords, waits } from "./entrance.js";
import { call, isMoved } from "./key.js";
import { armInbox } from "./inbox.js";
import { armKeys } from "./keys.js";
import { isLive, listen } from "./live.js";
import { armCode, ended, follows, used } from "./login.js";
import { armPalette } from "./palette.js";
import { armPause, showPause } from "./pause.js";
import { armPasskeys } from "./passkeys.js";
import { armPlaces, go, mark } from "./places.js";
import { armPress } from "./press.js";
import { armRecord } from "./record.js";
import { makeBackOff } from "./retry.js";
import { armSnooze } from "./snooze.js";
import { showStatus, titled } from "./status.js";
import { armTrust, isRead } from "./trust.js";
import { exchange, parse, say, showFragment, showTemplate, typed } from "./view.js";
import { armSound, showWaiting } from "./waiting.js";

const SOON_MS = 200;
const SEEN_MS = 2000;
const HIDDEN_MS = 10000;
const QUIET_MS = 30000;
const SURE_MS = 10500;
const REST = 8;
const SILENT = "The daemon is not responding. Pending approvals are kept. Trying again…";
// A daemon on this device is reached without a network.
const HERE = /(^|\.)localhost$|^127\.|^\[::1\]$/;
const OFFLINE = "This device is offline. Pending approvals are kept. This page goes on by itself.";
const main = document.getElementById("main");
const ARMS = [armDecision, armBatch, armTrust, armRecord, armPasskeys, armActs, armCopies, armEditor, armTry, count, keepOutcome, armInbox, armSnooze];
let shown = "";
let tag = "";
let rest = SEEN_MS;
let turn = 0;
let soonest = 0;
let wake = () => {};
let news = false;
let failed = false;
const backOff = makeBackOff();

// What only a login's answer says is taken out of the document, which is then left for one that never held it.
function takeTold() {
  const told = JSON.parse(document.documentElement.dataset.told);
  document.documentElement.removeAttribute("data-told");
  return told;
}

async function look() {
  const mine = ++turn;
  const path = location.pathname === "/" ? "/approvals" : location.pathname;
  const known = shown && tag ? { "If-None-Match": tag } : {};
  let answer, text;
  try {
    answer = await call(`/fragments${path}${location.search}`, { headers: { ...used(), ...known } });
    text = answer && await answer.text();
  } catch (error) {
    showStatus(undefined);
    failed = true;
    say("trouble", navigator.onLine || HERE.test(location.hostname) ? SILENT : OFFLINE);
    return;
  }
  failed = false;
  if (mine !== turn) return;
  say("trouble", answer && !answer.ok && ![304, 404].includes(answer.status) ? text : "");
  if (answer) follows(answer);
  showPause(answer);
  showWaiting(answer);
  showStatus(answer, isMoved());
  if (isMoved()) leaveForGood();
  else if (!answer) leave("no-session", ended());
  else if (answer.status === 404) leave("not-here");
  else if (answer.ok && text !== shown) present(text, answer.headers.get("ETag"));
}

function leave(template, why = "") {
  shown = "";
  showTemplate(template);
  titled("Aileron");
  if (why) say("why", why);
}

// No page of this origin is shown again, so what was typed and not saved is shown once more, to be copied.
function leaveForGood() {
  const texts = [...unsaved(), ...typed()];
  const again = main.dataset.template === "moved";
  leave("moved");
  if (again) return;
  const place = document.getElementById("unsaved");
  const left = texts.map((value) => Object.assign(document.createElement("textarea"), {
    value, rows: 12, readOnly: true, ariaLabel: "Unsaved text",
  }));
  place.hidden = !left.length;
  place.querySelector("div").replaceChildren(...left);
}

// What is being read is not exchanged under the reader: a new question is shown when they ask to see it.
function present(text, etag) {
  rest = SEEN_MS;
  const before = document.querySelector("#main > [data-title]:not([data-left])");
  const now = parse(text);
  if (before && (isAnother(before.dataset, now.dataset) || !isRead(before, now))) {
    outdate(before, () => {
      before.dataset.left = "yes";
      shown = "";
      look();
    });
    return;
  }
  if (before?.querySelector("[data-asked]")) { // whether one is sure: that question stands until its time is over
    setTimeout(lookSoon, SURE_MS);
    return;
  }
  const parts = before && shown && exchange(parse(shown), now);
  shown = text;
  tag = etag;
  if (parts) {
    parts.forEach((part) => armActs(part, look));
    if (parts.length) rearm(before);
    return;
  }
  const root = showFragment(text);
  titled(root.dataset.title);
  ARMS.forEach((arm) => arm(root, look));
}

// What has no preview yet is no question that could be answered: the preview takes its place by itself.
function isAnother(before, now) {
  if (before.fetching) return false;
  return before.state === "pending_approval" && now.state === before.state && now.digest !== before.digest;
}

// Another place: whatever is shown is left, and the heading of what comes is read first.
async function move() {
  document.querySelector("#main > [data-title]")?.setAttribute("data-left", "yes");
  shown = "";
  rest = SEEN_MS;
  mark();
  await look();
  document.querySelector("h1")?.focus();
}

// News comes by itself of what goes on record, not of files that change or times that pass: these are looked for, ever
// more seldom as long as nothing is otherwise.  What takes the daemon long is asked for less often as well: looking must
// never be most of its work.
async function follow() {
  for (;;) {
    const began = performance.now();
    news = false;
    await look();
    if (isMoved()) return; // nothing at this address is the daemon's any more
    const took = performance.now() - began;
    soonest = performance.now() + Math.max(SOON_MS, took * REST);
    rest = nextRest();
    if (!failed) backOff.reset();
    const pause = failed ? backOff.next() : Math.min(QUIET_MS, Math.max(rest, took * REST));
    await new Promise((resolve) => {
      wake = resolve;
      setTimeout(resolve, pause);
      if (news) lookSoon();
    });
  }
}

// Where no news comes, or what is shown is being fetched, a page asks again soon.
function nextRest() {
  if (document.querySelector("#main > [data-fetching]")) return SEEN_MS;
  if (!isLive()) return document.hidden ? HIDDEN_MS : SEEN_MS;
  return Math.min(QUIET_MS, rest * 2);
}

// What comes while the page looks may have come too late for that look.
function lookSoon() {
  news = true;
  setTimeout(() => wake(), Math.max(0, soonest - performance.now()));
}

document.addEventListener("visibilitychange", () => wake());
for (const kind of ["online", "offline", "pageshow"]) addEventListener(kind, () => wake());
armFront();
armPress();
armPause(look);
armSound();
armPlaces(move);
armKeys();
armCode();
armPalette((href) => go(href, move));
const told = takeTold();
if (told["page-key"]) begin(told["page-key"], told.next);
else if (told["turned-away"]) showTemplate(told["turned-away"]);
else if (waits()) waitForWords();
else {
  listen(lookSoon);
  follow();
}

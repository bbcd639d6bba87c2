// The shell's main script: it shows the page of the current path, and keeps it up to date with the daemon.

import { armActs } from "./act.js";
import { forgetTexts, note, restore } from "./back.js";
import { isRead } from "./asked.js";
import { armBatch, keepOutcome } from "./batch.js";
import { armCopies } from "./copy.js";
import { count } from "./countdown.js";
import { armDecision, outdate, rearm } from "./decide.js";
import { unsaved } from "./drafts.js";
import { armFront } from "./front.js";
import { fetchEntrance, waits } from "./entering.js";
import { call, isMoved } from "./key.js";
import { armHooks, drawHooks, tellHooks } from "./hooks.js";
import { armInbox } from "./inbox.js";
import { armKeys, armPalette } from "./keys.js";
import { isLive, listen } from "./live.js";
import { armCode, ended, follows, used } from "./login.js";
import { armPause, showPause } from "./pause.js";
import { armPlaces, correct, go, mark, placeBefore } from "./places.js";
import { armPress } from "./press.js";
import { makeBackOff } from "./retry.js";
import { armSnooze } from "./snooze.js";
import { showStatus, titled } from "./status.js";
import { exchange, parse, say, showFragment, showTemplate, typed } from "./view.js";
import { armSound, showWaiting } from "./waiting.js";

const SOON_MS = 200;
const SEEN_MS = 2000;
const HIDDEN_MS = 10000;
const QUIET_MS = 30000;
const SURE_MS = 10500;
const REST = 8;
const SILENT = "The daemon is not responding. Pending approvals are kept. Trying again…";
// Addresses of a daemon on this device, which needs no network.
const HERE = /(^|\.)localhost$|^127\.|^\[::1\]$/;
const REQUEST = /^\/(?:approvals|runs)\/([0-9A-HJKMNP-TV-Z]{26})$/;
const OFFLINE = "This device is offline. Pending approvals are kept. This page goes on by itself.";
const main = document.getElementById("main");
const wide = matchMedia("(min-width: 60rem)");
const ARMS = [armDecision, armBatch, armActs, count, keepOutcome, armInbox, armSnooze, drawHooks, armLater];
// Scripts that few pages need, by the elements that need them. The browser fetches each when such a page is shown.
const LATER = {
  "#editor, form[data-try]": () => import("./editor.js"),
  "#verify": () => import("./record.js"),
  "#add-passkey": () => import("./passkeys.js"),
  "#connect-agent": () => import("./connect-agent.js"),
  "#add-own-passkey": () => import("./own-passkeys.js"),
  "#trust": () => import("./trust.js"),
  "form[data-place] input[type=search]": () => import("./search.js"),
};
let shown = "";
let tag = "";
let rest = SEEN_MS;
let turn = 0;
let soonest = 0;
let wake = () => {};
let news = false;
let failed = false;
let at = null;
const backOff = makeBackOff();

// Return the login settings and remove them from the document.
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
    answer = await call(`/fragments${path}${searchOf(path)}`, { headers: { ...used(), ...known } });
    text = answer && await answer.text();
  } catch (error) {
    showStatus(undefined);
    tellHooks(undefined);
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
  tellHooks(answer);
  if (isMoved()) leaveForGood();
  else if (!answer) {
    leave("no-session", ended());
    fetchEntrance(); // the form on that page uses it
  }
  else if (answer.status === 404) leave("not-here");
  else if (answer.ok && text !== shown) present(text, answer.headers.get("ETag"));
}

// In a wide window the inbox has its first request beside the list.
function searchOf(path) {
  if (path !== "/approvals" || !wide.matches) return location.search;
  return `${location.search ? `${location.search}&` : "?"}beside=yes`;
}

function leave(template, why = "") {
  shown = "";
  forgetTexts();
  showTemplate(template);
  titled("Aileron");
  if (why) say("why", why);
}

// Show that the address is old, with all unsaved text for copying, since no page is shown at this address any more.
function leaveForGood() {
  const texts = [...unsaved(), ...typed()];
  const again = main.dataset.template === "moved";
  leave("moved");
  const [, id] = location.pathname.match(REQUEST) ?? [];
  if (id) say("open-again", `aileron open approval ${id}`);
  if (again) return;
  const place = document.getElementById("unsaved");
  const left = texts.map((value) => Object.assign(document.createElement("textarea"), {
    value, rows: 12, readOnly: true, ariaLabel: "Unsaved text",
  }));
  place.hidden = !left.length;
  place.querySelector("div").replaceChildren(...left);
}

// Show a new drawing of the page. If it asks another question than the shown one, show a notice instead: the reader
// decides when it is replaced.
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
  if (before?.querySelector("[data-asked], dialog[open]")) { // the page asks for confirmation: wait until that is over
    setTimeout(lookSoon, SURE_MS);
    return;
  }
  const parts = before && shown && exchange(parse(shown), now);
  shown = text;
  tag = etag;
  if (!parts) draw(now.dataset.address);
  else if (parts.length) {
    parts.forEach((part) => armActs(part, look));
    rearm(before);
  }
  note(text, etag);
}

function draw(address) {
  correct(address);
  const root = showFragment(shown);
  titled(root.dataset.title);
  ARMS.forEach((arm) => arm(root, look));
  if (at) restore(at);
  at = null;
}

// Fetch the scripts that the page needs, and have them add their handlers. If one cannot be fetched, the page is drawn
// again at the next answer of the daemon.
async function armLater(root, look) {
  for (const wanted of Object.keys(LATER).filter((each) => root.querySelector(each))) {
    const script = await LATER[wanted]().catch(() => null);
    if (!script) shown = "";
    else if (root.isConnected) script.arm(root, look);
  }
}

// Return whether a pending request was replaced by one with another digest. While the preview is being fetched, the
// request cannot be decided, so it may change.
function isAnother(before, now) {
  if (before.fetching) return false;
  return before.state === "pending_approval" && now.state === before.state && now.digest !== before.digest;
}

// Show the page of the new path, and focus its heading. On the way back, show a list at once as it was, at the row that
// was left, and then exchange what changed in it.
async function move(back) {
  document.querySelector("#main > [data-title]")?.setAttribute("data-left", "yes");
  shown = "";
  rest = SEEN_MS;
  at = back ?? null;
  mark();
  if (back?.text) {
    shown = back.text;
    tag = back.tag;
    draw();
    note(shown, tag);
  }
  await look();
  if (!back) scrollTo({ top: 0, behavior: "instant" });
  if (!back || document.activeElement === document.body) document.querySelector("h1")?.focus({ preventScroll: true });
}

// Open a page for a feature, in a new tab if this page has text that was typed and not saved.
function visit(path) {
  if (unsaved().length || typed().length) open(path, "_blank", "noopener");
  else go(path, move);
}

// Fetch the script of the login, and begin or continue it.
async function enter(act) {
  const entrance = await fetchEntrance();
  if (entrance) act(entrance);
  else say("trouble", "The daemon is not responding. Run aileron open again.");
}

// Let a login that only watches decide again, by a passkey. The prompt starts by a click only.
async function raiseLevel({ target }) {
  const button = target.closest(".raise");
  if (!button || button.disabled) return;
  button.disabled = true;
  say("raise-refused", "");
  const script = await import("./raise.js").catch(() => null);
  say("raise-refused", script ? await script.raise() : "The daemon is not responding. Nothing was changed.");
  button.disabled = false;
  await look();
}

// Fetch the palette at its first use.
async function openPalette() {
  const palette = await import("./palette.js").catch(() => say("trouble", SILENT));
  palette?.open((href) => go(href, move));
}

// Keep the page up to date until the address becomes old. Events report changes of the audit record, but not of files or
// times, so the page is also polled, less and less often while nothing changes. A page that takes the daemon long is
// polled less often as well.
async function follow() {
  for (;;) {
    const began = performance.now();
    news = false;
    await look();
    if (isMoved()) return; // the daemon no longer serves this address
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

// Return the time until the next poll. It is short if the event stream is disconnected or a preview is being fetched.
function nextRest() {
  if (document.querySelector("#main > [data-fetching]")) return SEEN_MS;
  if (!isLive()) return document.hidden ? HIDDEN_MS : SEEN_MS;
  return Math.min(QUIET_MS, rest * 2);
}

// Poll as soon as allowed, after an event. An event during a poll causes one more poll.
function lookSoon() {
  news = true;
  setTimeout(() => wake(), Math.max(0, soonest - performance.now()));
}

document.addEventListener("visibilitychange", () => wake());
wide.addEventListener("change", () => wake());
for (const kind of ["online", "offline", "pageshow"]) addEventListener(kind, () => wake());
armFront();
armPress();
armPause(look);
document.addEventListener("click", raiseLevel);
armSound();
armPlaces(move);
armKeys();
armCode();
armPalette(openPalette);
armCopies();
armHooks(visit);
const told = takeTold();
if (told["page-key"]) enter((entrance) => entrance.begin(told["page-key"], told.next));
else if (told["turned-away"]) showTemplate(told["turned-away"]);
else if (waits()) enter((entrance) => entrance.waitForWords());
else {
  at = placeBefore();
  listen(lookSoon);
  follow();
}

// Shows a notification of each new request until it is decided, and the number of pending decisions on the icon of the
// installed app. Both need an open page at an address that stays. Notifications are off until they are turned on in
// Settings.

import { onAnswer, onShown, openPage } from "./hooks.js";
import { call } from "./key.js";
import { say } from "./view.js";

const CHOICE = "aileron-notices";
const SEEN = "aileron-notices-seen";
const LEADS = "aileron-notices";
const FRONT = "aileron-front";
const PENDING = "/v1/notifications/pending";
const POLL = { headers: { "X-Aileron-Poll": "1" } };
const SETTLED_MS = 2000;
const MOST = 3;
const MANY = "many";
const STAYS = isSecureContext && !location.hostname.endsWith(".aileron.localhost");
const BLOCKED = "This browser blocks notifications for this address. Allow them in its site settings, then try again.";
const NONE = "This browser cannot show notifications for pages.";
const shown = new Map();
const due = new Set();
let leads = null;
let asking = false;
let again = false;
let leave = null;

function isOn() {
  return STAYS && window.Notification?.permission === "granted" && localStorage.getItem(CHOICE) === "on";
}

// Remove the number if it is unknown, or if nobody can decide: offline, logged out, or the vault is locked.
function showBadge(answer) {
  const waiting = answer?.headers.get("X-Aileron-Waiting");
  if (!navigator.setAppBadge || waiting === null) return;
  const count = answer?.headers.get("X-Aileron-Vault") === "unlocked" ? Number(waiting) : 0;
  (count ? navigator.setAppBadge(count) : navigator.clearAppBadge()).catch(() => {});
}

// One tab of the browser shows the notifications: the one that holds this lock. When it is closed, another tab gets it.
function take() {
  leads ??= navigator.locks.request(LEADS, () => {
    leads = true;
    check();
    return new Promise(() => {});
  });
}

// Fetch the list of pending requests. If it is called during a fetch, the list is fetched again afterwards.
async function check() {
  if (leads !== true) return;
  if (!isOn()) return withdrawAll();
  again = asking;
  if (asking) return;
  asking = true;
  try {
    const answer = await call(PENDING, POLL);
    if (answer?.ok) compare(await answer.json());
  } catch (error) {
    // The page itself shows that the daemon is not responding.
  }
  asking = false;
  if (again) check();
}

// Close the notifications of decided requests, and schedule those of new ones. If the list is incomplete, a request that
// is not in it may still be pending.
function compare({ items, more, title }) {
  const seen = readSeen() ?? items;
  if (!more) {
    for (const [tag, { ids }] of shown) if (!ids.some((id) => items.includes(id))) withdraw(tag);
  }
  writeSeen(more ? seen : seen.filter((id) => items.includes(id)));
  for (const id of items.filter((each) => !seen.includes(each) && !due.has(each))) {
    due.add(id);
    setTimeout(() => announce(id, title), SETTLED_MS);
  }
}

// Show a notification, unless the request was decided meanwhile or a page of the daemon has the focus.
async function announce(id, title) {
  try {
    const { held } = await navigator.locks.query();
    if (isOn() && !held.some(({ name }) => name === FRONT)) {
      const answer = await call(`${PENDING}/${id}`, POLL);
      if (answer?.ok) show(id, await answer.json(), title);
      else if (answer?.status !== 404) return; // it is tried again after the next poll
    }
    writeSeen([...(readSeen() ?? []), id]);
  } catch (error) {
    // The page itself shows that the daemon is not responding.
  } finally {
    due.delete(id);
  }
  check();
}

// If there are several notifications already, combine further requests into one.
function show(id, { title, text }, many) {
  const alone = shown.size < MOST;
  const tag = alone ? id : MANY;
  const ids = [...(shown.get(tag)?.ids ?? []), id];
  const notice = new Notification(alone ? title : many, { body: alone ? text : "", tag, dir: "ltr", lang: "en" });
  shown.set(tag, { notice, ids });
  notice.addEventListener("close", () => { if (shown.get(tag)?.notice === notice) shown.delete(tag); });
  notice.addEventListener("click", () => {
    window.focus();
    notice.close();
    openPage(alone ? `/approvals/${encodeURIComponent(id)}` : "/approvals");
  });
}

function withdraw(tag) {
  shown.get(tag).notice.close();
  shown.delete(tag);
}

function withdrawAll() {
  [...shown.keys()].forEach(withdraw);
}

function readSeen() {
  return JSON.parse(localStorage.getItem(SEEN));
}

function writeSeen(ids) {
  localStorage.setItem(SEEN, JSON.stringify(ids));
}

// Hold this lock while this tab has the focus, so that other tabs can tell.
function markFront() {
  const front = document.hasFocus() && !document.hidden;
  if (front && !leave) {
    const left = new Promise((done) => { leave = done; });
    navigator.locks.request(FRONT, { mode: "shared" }, () => left);
  } else if (!front) {
    leave?.();
    leave = null;
  }
}

// Connect the button in Settings, which the daemon draws only at an address that stays.
function armButton(root) {
  root.querySelector("#notify-here")?.addEventListener("click", choose);
  showChoice();
}

async function choose() {
  if (isOn()) localStorage.removeItem(CHOICE);
  else if (await Notification.requestPermission() === "granted") localStorage.setItem(CHOICE, "on");
  localStorage.removeItem(SEEN);
  showChoice();
  check();
}

function showChoice() {
  const button = document.getElementById("notify-here");
  if (!button) return;
  const permission = window.Notification?.permission;
  button.hidden = !permission;
  button.textContent = isOn() ? "Stop notifying me in this browser" : "Notify me in this browser";
  say("notify-state", { granted: "", default: "", denied: BLOCKED }[permission] ?? NONE);
}

onShown(armButton);
if (STAYS) {
  onAnswer((answer) => {
    showBadge(answer);
    if (answer === null) withdrawAll();
    else if (answer) take();
    check();
  });
  markFront();
  for (const kind of ["focus", "blur"]) addEventListener(kind, markFront);
  document.addEventListener("visibilitychange", markFront);
  addEventListener("pagehide", () => {
    withdrawAll();
    navigator.clearAppBadge?.();
  });
}

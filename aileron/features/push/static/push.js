// Connects the button that registers this browser for notifications while no page is open. The daemon draws the button
// only at an address that stays, with the IDs of the browsers that it knows. No dialog is opened but by a click.

import { onShown } from "./hooks.js";
import { call } from "./key.js";
import { say } from "./view.js";

const WORKER = "/push-worker.js";
const SCOPE = "/push-worker/"; // no page is below it, so the worker is asked for none
const BROWSERS = "/v1/notifications/browsers";
const MINE = "aileron-push"; // the ID under which this browser was registered
const ID_BYTES = 8;
const START = "Notify me when no page is open";
const STOP = "Stop notifying this browser";
const BLOCKED = "This browser blocks notifications for this address. Allow them in its site settings, then try again.";
const NONE = "This browser cannot be notified by pages that are closed. On an iPhone or iPad, add Aileron to the Home Screen first.";
const FAILED = "This browser's push service did not answer, so this browser was not registered. Try again.";
const LOGGED_OUT = "You are no longer logged in. Nothing was changed.";
const BROWSER_NAMES = [["Firefox", "Firefox|FxiOS"], ["Edge", "Edg"], ["Opera", "OPR"], ["Chrome", "Chrome|CriOS"], ["Safari", "Safari"]];
const SYSTEMS = ["Android", "iPhone", "iPad", "Windows", "Mac", "Linux"];

let tried = false;

onShown((root) => {
  const button = root.querySelector("#push-here");
  if (!button) return;
  button.addEventListener("click", async () => {
    button.disabled = true;
    say("push-state", await toggle(button));
    button.disabled = false;
    await showState(button);
  });
  keep(button).then(() => showState(button));
});

async function showState(button) {
  const can = "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;
  button.hidden = !can;
  if (!can) return say("push-state", NONE);
  if (Notification.permission === "denied") say("push-state", BLOCKED);
  button.textContent = await findRegistered(button) ? STOP : START;
}

async function findSubscription() {
  const registration = await navigator.serviceWorker?.getRegistration(SCOPE);
  return registration ? registration.pushManager.getSubscription() : null;
}

// Return this browser's subscription if the daemon has it, or null.
async function findRegistered(button) {
  const subscription = await findSubscription();
  return subscription && knows(button, await identify(subscription.endpoint)) ? subscription : null;
}

function knows(button, id) {
  return button.dataset.known.split(" ").includes(id);
}

// If the browser has changed its subscription, register the new one, without a dialog. If the daemon has removed this
// browser, forget that it was registered.
async function keep(button) {
  const before = localStorage.getItem(MINE);
  if (tried || !before || window.Notification?.permission !== "granted") return;
  tried = true;
  const subscription = await findSubscription();
  const id = subscription && await identify(subscription.endpoint);
  if (id === before || (!id && !knows(button, before))) {
    if (!knows(button, before)) localStorage.removeItem(MINE);
    return;
  }
  const trouble = await register(button);
  if (trouble) return say("push-state", trouble);
  if (knows(button, before)) await send("DELETE", `${BROWSERS}/${before}`, {});
}

// Register this browser, or remove it if it is registered. Return the error as text, or "". Safari opens the dialog only
// right after the click, so nothing is waited for before.
async function toggle(button) {
  if (button.textContent === STOP) return remove(button, await findSubscription());
  if (await Notification.requestPermission() !== "granted") return BLOCKED;
  return register(button);
}

async function register(button) {
  const { key, trouble } = await send("POST", `${BROWSERS}/key`, {});
  if (trouble) return trouble;
  const made = await subscribe(key);
  if (!made) return FAILED;
  const { endpoint, keys: { p256dh, auth } } = made.toJSON();
  const answer = await send("POST", BROWSERS, { endpoint, p256dh, auth, name: describe(navigator.userAgent) });
  if (answer.trouble) {
    await made.unsubscribe();
    return answer.trouble;
  }
  localStorage.setItem(MINE, answer.id);
  button.dataset.known += ` ${answer.id}`;
  return "";
}

async function subscribe(key) {
  try {
    const registration = await navigator.serviceWorker.register(WORKER, { scope: SCOPE, updateViaCache: "none" });
    await activated(registration);
    const options = { userVisibleOnly: true, applicationServerKey: key };
    try {
      return await registration.pushManager.subscribe(options);
    } catch (error) {
      const other = await registration.pushManager.getSubscription(); // for a key that the daemon had before
      if (!await other?.unsubscribe()) return null;
      return await registration.pushManager.subscribe(options);
    }
  } catch (error) {
    return null;
  }
}

function activated(registration) {
  const worker = registration.installing ?? registration.waiting;
  if (registration.active || !worker) return null;
  return new Promise((done) => {
    worker.addEventListener("statechange", () => { if (worker.state === "activated") done(); });
  });
}

async function remove(button, subscription) {
  if (!subscription) return "";
  const id = await identify(subscription.endpoint);
  const answer = await send("DELETE", `${BROWSERS}/${id}`, {});
  if (answer.trouble && answer.status !== 404) return answer.trouble;
  await subscription.unsubscribe();
  localStorage.removeItem(MINE);
  button.dataset.known = button.dataset.known.split(" ").filter((each) => each !== id).join(" ");
  return "";
}

// Return the daemon's ID of this browser.
async function identify(endpoint) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint));
  return [...new Uint8Array(digest).slice(0, ID_BYTES)].map((each) => each.toString(16).padStart(2, "0")).join("");
}

async function send(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  const answer = await call(path, { method, headers, body: JSON.stringify(body) });
  if (!answer) return { trouble: LOGGED_OUT };
  const told = await answer.json();
  return answer.ok ? told : { trouble: told.error.message, status: answer.status };
}

function describe(agent) {
  const [name] = BROWSER_NAMES.find(([, pattern]) => new RegExp(pattern).test(agent)) ?? ["Browser"];
  const system = SYSTEMS.find((each) => agent.includes(each));
  return system ? `${name} on ${system}` : name;
}

// Shows how many requests are pending when the daemon sends a push, and opens the pages at a click. It decides nothing,
// answers no request of a page, stores nothing, and sends nothing to the daemon: it has no login.

const TAG = "aileron-pending";
const PAGES = "/approvals";
const TEST = "test";
const SHOWS_ALWAYS = ".push.apple.com"; // a browser that withdraws its permission after pushes without a notification

addEventListener("install", () => skipWaiting());
addEventListener("push", (event) => event.waitUntil(receive(event.data)));
addEventListener("pushsubscriptionchange", (event) => event.waitUntil(renew(event)));
addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openPages());
});

async function receive(data) {
  const { id, n } = read(data);
  const [before] = await registration.getNotifications({ tag: TAG });
  if (id === TEST) return show("this is a test", { renotify: true, data: before?.data });
  if (n && !await isSeen()) {
    return show(describe(n), { renotify: !before?.data || n > before.data.n || id > before.data.id, data: { id, n } });
  }
  before?.close();
  if (!n && await mustShow()) await show(describe(0), { silent: true });
}

// A push without readable data still means that something is pending.
function read(data) {
  try {
    const told = data.json();
    const { id, n } = told.notification?.data ?? told; // what Safari shows without this worker, if it is new enough
    if (Number.isSafeInteger(n) && n >= 0) return { id: String(id), n };
  } catch (error) {
    // It is not JSON.
  }
  return { id: "", n: 1 };
}

// The browser has another subscription now. A page that is logged in registers it: ask the user to open one.
async function renew({ oldSubscription, newSubscription }) {
  try {
    if (!newSubscription) await registration.pushManager.subscribe(oldSubscription.options);
  } catch (error) {
    // The page subscribes when it is opened.
  }
  await show("open Aileron once, so that this browser is notified again", { renotify: true });
}

function describe(n) {
  if (!n) return "no request is waiting for your approval";
  return n === 1 ? "1 request is waiting for your approval" : `${n} requests are waiting for your approval`;
}

function show(words, more) {
  const renotify = more.renotify ?? false;
  const options = { ...more, renotify, tag: TAG, icon: "/static/icon.svg", dir: "ltr", lang: "en" };
  return registration.showNotification(`Aileron: ${words}`, options);
}

function windows() {
  return clients.matchAll({ type: "window", includeUncontrolled: true });
}

// Return whether a page of the daemon is in view, which shows the same.
async function isSeen() {
  return !await mustShow() && (await windows()).some(({ visibilityState }) => visibilityState === "visible");
}

async function mustShow() {
  const subscription = await registration.pushManager.getSubscription();
  return Boolean(subscription) && new URL(subscription.endpoint).hostname.endsWith(SHOWS_ALWAYS);
}

async function openPages() {
  const [open] = await windows();
  return open ? open.focus() : clients.openWindow(PAGES);
}

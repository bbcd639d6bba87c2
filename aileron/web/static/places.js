// Navigation between pages without reloading the shell: links, filters and the back button, which leads to the row that
// was left.

import { say } from "./view.js";
import { anchorOf, forget, keep, placeOf } from "./back.js";

const menu = document.getElementById("menu");
const links = [...document.querySelectorAll("body > header a")];
const before = history.state?.at;
let entry = history.state?.entry ?? crypto.randomUUID();

// Call changed after each navigation; after the back button, with the place to return to.
export function armPlaces(changed) {
  history.scrollRestoration = "manual";
  replace(location.href);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || !isPlain(event) || !isOurs(link)) return;
    event.preventDefault();
    go(link.href, changed, link);
  });
  document.addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target;
    if (form.dataset.place === undefined) return;
    const address = addressOf(form);
    if (address !== location.pathname + location.search) go(address, changed); // else it was found while typing
  });
  addEventListener("popstate", ({ state }) => {
    keep(entry);
    entry = state?.entry ?? crypto.randomUUID();
    if (!state?.entry) replace(location.href);
    changed(placeOf(entry));
  });
  addEventListener("scrollend", () => replace(location.href, anchorOf()));
  mark();
}

// Return where the reader was on this page before the shell was loaded.
export function placeBefore() {
  return before;
}

// Mark the navigation link of the current page. A link lists further pages that it stands for in data-also.
export function mark() {
  const first = `/${location.pathname.split("/")[1] || "approvals"}`;
  for (const link of links) {
    const all = [link.getAttribute("href"), ...(link.dataset.also ?? "").split(" ")];
    if (all.includes(first)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// Replace the address by that of the page that is shown, if it has another one: the request beside the inbox keeps its
// place when others come.
export function correct(address) {
  if (!address || address === location.pathname) return;
  replace(address + (["/", "/approvals"].includes(location.pathname) ? location.search : ""));
  mark();
}

export function go(address, changed, link) {
  if (menu.matches(":popover-open")) menu.hidePopover();
  keep(entry, link);
  entry = crypto.randomUUID();
  forget();
  history.pushState({ entry }, "", address);
  say("trouble", "");
  changed();
}

// Return the address of the list that a form of filters leads to.
export function addressOf(form) {
  const given = [...new FormData(form)].filter(([, value]) => value !== "");
  const query = new URLSearchParams(given).toString();
  return `${form.dataset.place}${query && "?"}${query}`;
}

// Give the page that is shown another address, without a new entry of the history.
export function rename(address) {
  replace(address);
}

function replace(address, at) {
  history.replaceState({ entry, at }, "", address);
}

function isPlain(event) {
  return event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
}

function isOurs(link) {
  const away = link.target || link.hasAttribute("download") || link.getAttribute("href").startsWith("#");
  return link.origin === location.origin && !away;
}

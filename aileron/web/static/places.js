// From page to page without loading the shell anew: links, filters and the way back.

import { say } from "./view.js";

const menu = document.getElementById("menu");
const links = [...document.querySelectorAll("body > header a")];

export function armPlaces(changed) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || !isPlain(event) || !isOurs(link)) return;
    event.preventDefault();
    go(link.href, changed);
  });
  document.addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target;
    if (form.dataset.place === undefined) return;
    const given = [...new FormData(form)].filter(([, value]) => value !== "");
    const query = new URLSearchParams(given).toString();
    go(`${form.dataset.place}${query && "?"}${query}`, changed);
  });
  addEventListener("popstate", () => changed(true));
  mark();
}

// Which of the pages this is.  A link that stands for further pages names them in data-also.
export function mark() {
  const first = `/${location.pathname.split("/")[1] || "approvals"}`;
  for (const link of links) {
    const all = [link.getAttribute("href"), ...(link.dataset.also ?? "").split(" ")];
    if (all.includes(first)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

export function go(address, changed) {
  if (menu.matches(":popover-open")) menu.hidePopover();
  history.pushState(null, "", address);
  say("trouble", "");
  changed(true);
}

function isPlain(event) {
  return event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
}

function isOurs(link) {
  const away = link.target || link.hasAttribute("download") || link.getAttribute("href").startsWith("#");
  return link.origin === location.origin && !away;
}

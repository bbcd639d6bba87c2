// Keys: an element names its own in data-key, a list is gone through by j and k, and ? tells them all.

const dialog = document.getElementById("keys");
const DIALOGS = "dialog[open]";

export function armKeys() {
  document.getElementById("show-keys").addEventListener("click", () => dialog.showModal());
  document.getElementById("hide-keys").addEventListener("click", () => dialog.close());
  document.addEventListener("keydown", (event) => {
    if (isTaken(event)) return;
    const act = { "?": () => dialog.showModal(), j: () => step(1), k: () => step(-1) }[event.key] ?? (() => reach(event.key));
    if (act() !== false) event.preventDefault();
  });
}

// Keys do nothing while the user types, or uses one of the browser's own.
function isTaken(event) {
  const { target } = event;
  const typing = target.isContentEditable || target.matches("textarea, select, input:not([type=checkbox])");
  return typing || document.querySelector(DIALOGS) || event.ctrlKey || event.altKey || event.metaKey || event.key.length !== 1;
}

// Beside the list, the next request is shown; in the list alone, its row is reached.
function step(by) {
  const places = [...document.querySelectorAll("#main .asks a")].filter((each) => !each.closest("li").hidden && !each.closest("details:not([open])"));
  if (!places.length) return false;
  const row = document.querySelector("#main .split.open") ? null : document.activeElement.closest(".asks li");
  const here = places.findIndex((each) => (row ? row.contains(each) : each.getAttribute("aria-current") === "true"));
  const next = here < 0 ? (by > 0 ? 0 : places.length - 1) : Math.min(Math.max(here + by, 0), places.length - 1);
  if (document.querySelector("#main .split.open")) places[next].click();
  else places[next].focus();
  return true;
}

// What cannot be used yet is not reached: what is to be read before it is.
function reach(key) {
  const wanted = `[data-key="${CSS.escape(key)}"]:not([hidden])`;
  const row = document.activeElement.closest(".asks li") ?? document.querySelector("#main .row:has(> [aria-current=true])");
  const found = document.querySelector(`#toast:not([hidden]) ${wanted}`) ?? row?.querySelector(wanted)
    ?? document.querySelector(`#main .detail ${wanted}`) ?? document.querySelector(`#main ${wanted}`);
  if (!found) return false;
  const next = found.disabled ? document.querySelector("#main .unread") ?? found : found;
  next.scrollIntoView({ block: "nearest" });
  next.focus({ preventScroll: true });
  return true;
}

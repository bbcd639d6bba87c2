// Keys: an element names its own in data-key, a list is gone through by j and k, and ? tells them all.

const dialog = document.getElementById("keys");

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
  return typing || dialog.open || event.ctrlKey || event.altKey || event.metaKey || event.key.length !== 1;
}

function step(by) {
  const places = [...document.querySelectorAll("#main .asks a")].filter((each) => each.checkVisibility());
  if (!places.length) return false;
  const row = document.activeElement.closest(".asks li");
  const here = places.findIndex((each) => row?.contains(each));
  const next = here < 0 ? (by > 0 ? 0 : places.length - 1) : Math.min(Math.max(here + by, 0), places.length - 1);
  places[next].focus();
  return true;
}

// What cannot be used yet is not reached: what is to be read before it is.
function reach(key) {
  const row = document.activeElement.closest(".asks li");
  const found = (row ?? document.getElementById("main")).querySelector(`[data-key="${CSS.escape(key)}"]:not([hidden])`);
  if (!found) return false;
  const next = found.disabled ? document.querySelector("#main .unread") ?? found : found;
  next.scrollIntoView({ block: "nearest" });
  next.focus({ preventScroll: true });
  return true;
}

// Keyboard shortcuts. An element declares its key in data-key, j and k step through the list, and ? shows all keys.

const dialog = document.getElementById("keys");
const DIALOGS = "dialog[open]";
const FIELDS = "textarea, select, input:not([type=checkbox])";

export function armKeys() {
  document.getElementById("show-keys").addEventListener("click", () => dialog.showModal());
  document.getElementById("hide-keys").addEventListener("click", () => dialog.close());
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target.matches(FIELDS) && !document.querySelector(DIALOGS)) event.target.blur();
    if (isTaken(event)) return;
    const act = { "?": () => dialog.showModal(), j: () => step(1), k: () => step(-1) }[event.key] ?? (() => reach(event.key));
    if (act() !== false) event.preventDefault();
  });
}

// Open the palette by its button, or by its keys in any place.
export function armPalette(open) {
  const button = document.getElementById("show-palette");
  if (/Mac|iP/.test(navigator.platform)) button.querySelector("kbd").textContent = "⌘ K";
  button.addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
}

// Return whether to ignore a key: the user types in a field, a dialog is open, or it may be a shortcut of the browser.
function isTaken(event) {
  const { target } = event;
  const typing = target.isContentEditable || target.matches(FIELDS);
  return typing || document.querySelector(DIALOGS) || event.ctrlKey || event.altKey || event.metaKey || event.key.length !== 1;
}

// Move by a number of rows. Beside the list, open that request; in the list alone, focus its row.
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

// Focus the element with this key. If the element is disabled, focus the first unread part instead.
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

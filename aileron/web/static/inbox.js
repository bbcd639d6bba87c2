// The inbox: the step to the next request, the filter, and the toast with the last decision.

import { send } from "./act.js";
import { now } from "./key.js";

const TOAST_MS = 8000;
export const KEYS = ["agent", "action", "host", "session"];
const toast = document.getElementById("toast");
let over = 0;

export function armInbox(root) {
  if (!root.matches(".split")) return;
  const field = root.querySelector("#filter-inbox");
  field?.addEventListener("focus", () => suggest(root, field), { once: true });
  field?.addEventListener("input", () => filter(root));
  field?.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    field.value = "";
    filter(root);
    field.blur();
  });
  root.addEventListener("patched", () => filter(root));
  filter(root);
  root.querySelector(".row-link[aria-current=true]")?.scrollIntoView({ block: "nearest" });
}

// Fetch the suggestions when the filter is used. It works without them.
async function suggest(root, field) {
  const script = await import("./suggest.js").catch(() => null);
  script?.arm(root, field, () => filter(root));
}

// Return the URL of the request below the decided one, else of the one above. Return undefined if there is no other.
export function nextOf(root) {
  const rows = [...root.querySelectorAll(".asks .row")].filter((row) => !row.hidden && !row.closest("#snoozed"));
  const here = rows.findIndex((row) => row.dataset.row === root.dataset.id);
  return (rows[here + 1] ?? (here > 0 ? rows[here - 1] : undefined))?.querySelector("a").getAttribute("href");
}

// Show another request in the place of this one. The browser's back button skips the decided request.
export async function go(root, href, look) {
  // The request may have been drawn again while it was decided.
  for (const each of [root, document.querySelector("#main > [data-title]")]) each.dataset.left = "yes";
  history.replaceState(null, "", href);
  await look();
  document.querySelector("#main h1")?.focus({ preventScroll: true });
}

// Hide the rows that do not contain every word of the filter. A word such as agent:x is searched only in that field.
function filter(root) {
  const field = root.querySelector("#filter-inbox");
  if (!field) return;
  const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of root.querySelectorAll(".asks .row")) {
    const found = row.dataset.found.toLowerCase();
    const all = `${row.textContent} ${found}`.toLowerCase();
    row.hidden = !wanted.every((word) => (KEYS.some((key) => word.startsWith(`${key}:`)) ? found : all).includes(word));
  }
}

// Show a message with a link to the request and, if given, the button that undoes the approval.
export function tell(words, id, held) {
  toast.replaceChildren(Object.assign(document.createElement("a"), { href: `/approvals/${encodeURIComponent(id)}`, textContent: words }));
  if (held) toast.append(held);
  toast.hidden = false;
  clearTimeout(over);
  over = setTimeout(() => { toast.hidden = true; }, TOAST_MS);
}

// Return the button that takes approvals back until they begin.
export function undoOf(ids, begins) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Undo", className: "small" });
  button.dataset.key = "u";
  button.addEventListener("click", async () => {
    button.disabled = true;
    const troubles = await Promise.all(ids.map((id) => send("POST", `/v1/action-approvals/${encodeURIComponent(id)}/withdraw`, {})));
    tell(troubles.find(Boolean) ?? "Taken back. Nothing was sent.", ids[0], null);
  });
  setTimeout(() => button.remove(), new Date(begins) - now()); // the run starts then
  return button;
}

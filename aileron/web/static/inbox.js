// The inbox: the request beside the list, the filter, and what was decided last.

const TOAST_MS = 8000;
const KEYS = ["agent", "action", "host", "session"];
const toast = document.getElementById("toast");
let over = 0;

export function armInbox(root) {
  if (!root.matches(".split")) return;
  const field = root.querySelector("#filter-inbox");
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

// The request after the one that was decided, or the one before it; nothing if there is no other.
export function nextOf(root) {
  const rows = [...root.querySelectorAll(".asks .row")].filter((row) => !row.hidden && !row.closest("#snoozed"));
  const here = rows.findIndex((row) => row.dataset.row === root.dataset.id);
  return (rows[here + 1] ?? (here > 0 ? rows[here - 1] : undefined))?.querySelector("a").getAttribute("href");
}

// Another request in the place of this one; the way back does not lead to what was decided.
export async function go(root, href, look) {
  root.dataset.left = "yes";
  history.replaceState(null, "", href);
  await look();
  document.querySelector("#main h1")?.focus({ preventScroll: true });
}

// Each word must be found: in all that the row says, or with a name before it in what is called so.
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

// What was decided, with a way to take it back as long as it has not begun.
export function tell(words, id, held) {
  toast.replaceChildren(Object.assign(document.createElement("a"), { href: `/approvals/${encodeURIComponent(id)}`, textContent: words }));
  if (held) toast.append(held);
  toast.hidden = false;
  clearTimeout(over);
  over = setTimeout(() => { toast.hidden = true; }, TOAST_MS);
}

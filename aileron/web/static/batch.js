// Several decisions at once.  What is selected is shown whole, and each decision names the digest of exactly that.

import { send } from "./act.js";
import { now } from "./key.js";

const SETTLE_MS = 500;
const HOLD_MS = 5000;
const read = new Set();
const troubles = new Map();
let outcome = "";
let working = false;
let settled = 0;
let eye = null;

// Only a row that can be decided from what is shown here has a tick that can be set; one that shows something else by
// now has lost it, for its tick has another id.
export function armBatch(root, changed) {
  const batch = root.querySelector("#batch");
  if (!batch) return;
  const ticks = () => [...root.querySelectorAll("input[data-tickable=yes]")];
  const refresh = () => showChosen(root, batch, chosen(root));
  root.addEventListener("change", ({ target }) => {
    if (!target.matches("input[data-tickable]")) return;
    outcome = "";
    troubles.clear();
    refresh();
  });
  root.addEventListener("click", ({ target }) => {
    if (target.id !== "select-routine") return;
    const all = ticks().filter((tick) => tick.closest("#routine") && !tick.closest(".row").hidden);
    const every = all.every((tick) => tick.checked);
    all.forEach((tick) => { tick.checked = !every; });
    refresh();
  });
  root.querySelector("#approve-ticked").addEventListener("click", () => decide(root, true, changed));
  root.querySelector("#deny-ticked").addEventListener("click", () => decide(root, false, changed));
  root.addEventListener("patched", () => wakeTicks(root, refresh));
  wakeTicks(root, refresh);
}

function wakeTicks(root, refresh) {
  const turn = ++settled;
  setTimeout(() => {
    if (turn !== settled) return;
    root.querySelectorAll("input[data-tickable]").forEach((tick) => { tick.disabled = tick.dataset.tickable !== "yes"; });
    const all = root.querySelector("#select-routine");
    if (all) all.disabled = !root.querySelector("#routine input[data-tickable=yes]");
    refresh();
  }, SETTLE_MS);
  refresh();
}

function chosen(root) {
  return [...root.querySelectorAll("input[data-tickable=yes]")].filter((tick) => tick.checked);
}

// What was selected, each with all that is sent.  It can be decided once the end of each was on the screen.
function showChosen(root, batch, ticks) {
  const place = batch.querySelector("#batch-told");
  const words = ticks.map((tick) => tick.id).join();
  batch.hidden = !ticks.length && !outcome;
  if (place.dataset.shown !== words) {
    place.dataset.shown = words;
    place.replaceChildren(...ticks.map(drawn));
    watch(root, batch, place);
  }
  for (const item of place.children) item.querySelector(".answer").textContent = troubles.get(item.dataset.of) ?? "";
  batch.querySelector("#batch-answer").textContent = outcome;
  enable(root, batch);
}

function drawn(tick) {
  const row = tick.closest(".row");
  const item = document.createElement("section");
  const head = document.createElement("strong");
  item.dataset.of = tick.id;
  head.textContent = row.querySelector(".row-title").textContent;
  const answer = Object.assign(document.createElement("p"), { className: "answer" });
  const end = Object.assign(document.createElement("span"), { className: "end" });
  item.append(head, ...[...row.querySelectorAll(".told .line")].map((line) => line.cloneNode(true)), answer, end);
  return item;
}

function watch(root, batch, place) {
  eye?.disconnect();
  eye = new IntersectionObserver((entries) => {
    entries.filter((each) => each.isIntersecting).forEach((each) => read.add(each.target.parentElement.dataset.of));
    enable(root, batch);
  });
  place.querySelectorAll(".end").forEach((end) => eye.observe(end));
}

function enable(root, batch) {
  const ticks = chosen(root);
  const left = ticks.filter((tick) => !read.has(tick.id)).length;
  const [approve, deny] = [batch.querySelector("#approve-ticked"), batch.querySelector("#deny-ticked")];
  const many = ticks.length;
  const wanted = [many ? `Approve ${many} selected` : "Approve selected", many ? `Deny ${many} selected` : "Deny selected"];
  [approve, deny].forEach((button, place) => { if (button.textContent !== wanted[place]) button.textContent = wanted[place]; });
  batch.querySelector("#batch-unread").textContent = left ? "Scroll to the end of what is selected before you approve." : "";
  approve.disabled = !many || working || left > 0;
  deny.disabled = !many || working;
}

async function decide(root, approved, changed) {
  const ticks = chosen(root);
  const reason = root.querySelector("#batch-reason").value.trim();
  const word = approved ? "approved" : "denied";
  working = true;
  troubles.clear();
  let done = 0;
  for (const tick of ticks) {
    const { id, digest } = tick.dataset;
    const held = approved ? { not_before: new Date(now() + HOLD_MS).toISOString() } : {};
    const decision = { approved, digest, ...(reason ? { reason } : {}), ...held };
    const trouble = await send("POST", `/v1/action-approvals/${encodeURIComponent(id)}/decide`, decision);
    if (trouble) troubles.set(tick.id, `Not ${word}: ${trouble}`);
    else {
      done += 1;
      tick.checked = false;
    }
    outcome = `${done} of ${ticks.length} ${word}.${troubles.size ? ` ${troubles.size} not ${word}; each shows the reason.` : ""}`;
    showChosen(root, root.querySelector("#batch"), chosen(root));
  }
  working = false;
  root.querySelector("#batch-reason").value = "";
  await changed();
}

// The outcome stays while the list is drawn anew, until something else is selected or another page shown.
export function keepOutcome(root) {
  const batch = root.querySelector("#batch");
  if (batch && outcome) showChosen(root, batch, chosen(root));
}

// Decides several requests at once. The selected requests are shown in full, and each decision is sent with the digest
// of the shown request.

import { attempt } from "./act.js";
import { tell, undoOf } from "./inbox.js";
import { now } from "./key.js";
import { followLevel, onlyWatches } from "./level.js";
import { itemOf, signByBrowser, signByPasskey } from "./sign.js";

const SETTLE_MS = 500;
const HOLD_MS = 5000;
const MOST_SIGNED = 50;
const UNUSED = "Your passkey was not used. Nothing was decided.";
const ENDED = "You are no longer logged in. Nothing was decided.";
const read = new Set();
const troubles = new Map();
let outcome = "";
let working = false;
let settled = 0;
let eye = null;

// Add the handlers of the checkboxes and of the batch buttons. A checkbox can be set only if its row shows the request
// in full. If a row's content changes, its checkbox gets another ID and so is no longer set.
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
  followLevel(root, refresh);
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

// Show the selected requests, each with everything that would be sent. They can be approved once the end of each was on
// the screen.
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
  const many = ticks.flatMap(membersOf).length;
  const wanted = [many ? `Approve ${many} selected` : "Approve selected", many ? `Deny ${many} selected` : "Deny selected"];
  [approve, deny].forEach((button, place) => { if (button.textContent !== wanted[place]) button.textContent = wanted[place]; });
  batch.querySelector("#batch-unread").textContent = left ? "Scroll to the end of what is selected before you approve." : "";
  approve.disabled = !many || working || left > 0 || onlyWatches();
  deny.disabled = !many || working || onlyWatches();
}

async function decide(root, approved, changed) {
  const ticks = chosen(root);
  const reason = root.querySelector("#batch-reason").value.trim();
  const word = approved ? "approved" : "denied";
  const begins = new Date(now() + HOLD_MS).toISOString();
  const list = ticks.flatMap((tick) => membersOf(tick).map(({ id, digest }) => [id, worded(digest, approved, reason, begins), tick]));
  working = true;
  troubles.clear();
  const done = [];
  let failed = 0;
  await decideEach(list, ([id, , tick], trouble) => {
    if (trouble) {
      failed += 1;
      troubles.set(tick.id, `Not ${word}: ${trouble}`);
    } else done.push(id);
    tick.checked = troubles.has(tick.id);
    outcome = `${done.length} of ${list.length} ${word}.${failed ? ` ${failed} not ${word}; each shows the reason.` : ""}`;
    // A row of several requests is drawn anew when one of them was decided, without its reason.
    if (list.length > ticks.length) outcome += ` ${[...troubles.values()].join(" ")}`;
    showChosen(root, root.querySelector("#batch"), chosen(root));
  });
  if (approved && done.length) tell(`Approved: ${done.length}`, done[0], undoOf(done, begins));
  working = false;
  root.querySelector("#batch-reason").value = "";
  await changed();
}

// Return the requests that a checkbox or a page stands for, each with the digest of what it shows.
export function membersOf({ dataset: { id, digest } }) {
  const digests = digest.split(",");
  return id.split(",").map((each, at) => ({ id: each, digest: digests[at] }));
}

// Send decisions, given as [ID, decision, …], with one signature for each list. Call told with each and its error, or "".
export async function decideEach(list, told) {
  for (let at = 0; at < list.length; at += MOST_SIGNED) {
    const left = await decidePart(list.slice(at, at + MOST_SIGNED), signByBrowser, told);
    if (left.length) await decidePart(left, signByPasskey, told);
  }
}

function worded(digest, approved, reason, begins) {
  return { approved, digest, ...(reason ? { reason } : {}), ...(approved ? { not_before: begins } : {}) };
}

// Send a list of decisions with one signature, each in a request of its own. Return those that need a passkey.
async function decidePart(part, sign, told) {
  const signed = await sign(part.map(([id, decision]) => itemOf(id, decision)));
  const left = [];
  for (const each of part) {
    if (!signed || signed.error) {
      told(each, signed?.error?.message ?? (sign === signByPasskey ? UNUSED : ENDED));
      continue;
    }
    const path = `/v1/action-approvals/${encodeURIComponent(each[0])}/decide`;
    const { trouble, needsPasskey } = await attempt("POST", path, { ...each[1], signed });
    if (needsPasskey && !signed.credential) left.push(each);
    else told(each, trouble);
  }
  return left;
}

// Show the outcome again after the list was redrawn, until the selection changes or another page is shown.
export function keepOutcome(root) {
  const batch = root.querySelector("#batch");
  if (batch && outcome) showChosen(root, batch, chosen(root));
}

// Several decisions at once, each with the digest of exactly what its row shows, and each with an answer of its own.

import { send } from "./act.js";

const SETTLE_MS = 500;
const troubles = new Map();
let outcome = "";
let working = false;
let count = () => {};

// Only a row that shows all there is has a tick that can be set; one that shows something else by now has lost it.
export function armBatch(root, changed) {
  const button = root.querySelector("#approve-ticked");
  if (!button) return;
  const ticks = [...root.querySelectorAll("input[data-tickable]")];
  const chosen = () => ticks.filter((tick) => tick.checked && tick.dataset.tickable === "yes");
  let settled = false;
  count = () => {
    const many = chosen().length;
    button.textContent = many ? `Approve ${many} selected` : "Approve selected";
    button.disabled = !many || working || !settled;
  };
  ticks.forEach((tick) => tick.addEventListener("change", () => {
    outcome = "";
    showTroubles(root);
    count();
  }));
  setTimeout(() => {
    settled = true;
    ticks.forEach((tick) => { tick.disabled = tick.dataset.tickable !== "yes"; });
    count();
  }, SETTLE_MS);
  showTroubles(root);
  count();
  button.addEventListener("click", () => approve(chosen(), changed));
}

async function approve(ticks, changed) {
  working = true;
  count();
  troubles.clear();
  let done = 0;
  for (const { dataset: { id, digest } } of ticks) {
    const decision = { approved: true, digest };
    const trouble = await send("POST", `/v1/action-approvals/${encodeURIComponent(id)}/decide`, decision);
    if (trouble) troubles.set(id, trouble);
    else done += 1;
    outcome = `${done} of ${ticks.length} approved.${troubles.size ? ` ${troubles.size} not approved; each shows the reason.` : ""}`;
    showTroubles(document);
  }
  working = false;
  await changed();
  showTroubles(document);
  count();
}

function showTroubles(root) {
  for (const tick of root.querySelectorAll("input[data-tickable]")) {
    const trouble = troubles.get(tick.dataset.id);
    if (trouble) tick.closest("li").querySelector(".answer").textContent = `Not approved: ${trouble}`;
  }
  const place = root.querySelector("#batch-answer");
  if (place) place.textContent = outcome;
}

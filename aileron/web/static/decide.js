// Deciding one approval: what is sent names the digest of exactly what is in the page.

import { send } from "./act.js";
import { armEdit, discard } from "./edit.js";
import { armGrant } from "./grant.js";
import { go, nextOf, tell } from "./inbox.js";
import { approvalOf, argumentsOf, intentOf } from "./intent.js";
import { now } from "./key.js";
import { armLater, isLater } from "./later.js";
import { armReading, showUnread, unread } from "./reading.js";

const SETTLE_MS = 500;
const SURE_MS = 10000;
// A key slips more easily than a pointer, so what was approved by a key can be taken back for a moment.
const HOLD_MS = 5000;
const BUTTONS = ["deny", "change", "approve"];

// Buttons come alive a moment after what they are about was shown, so that no click meant for something else decides.
export function armDecision(article, look) {
  if (!article.querySelector("#decision")) return;
  armReasons(article);
  armEdit(article);
  armLater(article);
  armGrant(article);
  armReading(article, () => enable(article));
  for (const event of ["input", "change", "toggle"]) {
    article.addEventListener(event, () => follow(article), { capture: true });
  }
  article.querySelector("#does").dataset.usual = article.querySelector("#does").textContent;
  follow(article);
  settle(article);
  buttonsOf(article).forEach((button) => button.addEventListener("click", async (event) => {
    if (button.id === "approve" && !isSure(article, button)) return;
    disable(article);
    const next = button.id === "change" ? undefined : nextOf(article);
    const held = button.id === "approve" && event.detail === 0 && !isLater(article);
    const trouble = await act(article, button.id, held);
    article.querySelector("#answer").textContent = trouble;
    if (trouble) {
      enable(article);
      button.focus();
      await look();
      return;
    }
    if (button.id !== "change") announce(article, button.id === "approve", held);
    if (next) return go(article, next, look);
    document.querySelector("#main h1").focus();
    await look();
  }));
}

// Where something is red, the first press says what the second does.
function isSure(article, button) {
  if (article.dataset.severity !== "high" || button.dataset.asked) {
    delete button.dataset.asked;
    return true;
  }
  const place = button.querySelector("span");
  const words = place.textContent;
  button.dataset.asked = "yes";
  place.textContent = "Confirm: approve in spite of the red warning";
  settle(article);
  button.disabled = true;
  setTimeout(() => { if (document.activeElement === document.body) button.focus(); }, SETTLE_MS + 50);
  setTimeout(() => {
    if (!button.dataset.asked) return;
    delete button.dataset.asked;
    place.textContent = words;
  }, SURE_MS);
  return false;
}

// What was decided, for who goes on with the next request.
function announce(article, approved, held) {
  const { id } = article.dataset;
  const words = `${approved ? "Approved" : "Denied"}: ${article.querySelector("h1 .title")?.textContent ?? ""}`;
  tell(words, id, held ? undo(id) : null);
}

function undo(id) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Undo", className: "small" });
  button.dataset.key = "u";
  button.addEventListener("click", async () => {
    button.disabled = true;
    const trouble = await send("POST", `/v1/action-approvals/${encodeURIComponent(id)}/withdraw`, {});
    tell(trouble || "Taken back. Nothing was sent.", id, null);
  });
  return button;
}

// The same question, of which a part is told otherwise: what is new in it is to be read.
export function rearm(article) {
  if (!article.querySelector("#decision")) return;
  armReading(article, () => enable(article));
  enable(article);
}

// What is in the page is no longer what would be decided: it stays to be read, and cannot be decided.
export function outdate(article, showNow) {
  if (article.dataset.outdated) return;
  const buttons = [...article.querySelectorAll("button")];
  const atButton = buttons.includes(document.activeElement);
  article.dataset.outdated = "yes";
  buttons.forEach((each) => { each.disabled = true; });
  const notice = document.getElementById("changed").content.cloneNode(true);
  const button = notice.querySelector("#look");
  button.addEventListener("click", showNow);
  (article.querySelector(".bar")?.firstElementChild ?? article.firstElementChild).before(notice);
  if (atButton) button.focus();
}

// The one button that goes ahead says what it does now.  With other words it rests again, as when it was shown.
function follow(article) {
  const { button, words, does, missing } = intentOf(article);
  const place = article.querySelector("#does");
  const told = does || place.dataset.usual;
  if (place.textContent !== told) place.textContent = told;
  article.dataset.missing = missing;
  const shown = article.querySelector("#approve > span");
  const asked = article.querySelector("#approve").dataset.asked;
  const same = button === "change" || asked || shown.textContent === words;
  if ((same && !article.querySelector(`#${button}`).hidden) || article.dataset.outdated) return enable(article);
  const focused = document.activeElement.matches("#approve, #change");
  article.querySelector("#approve").hidden = button !== "approve";
  article.querySelector("#change").hidden = button !== "change";
  if (button === "approve") shown.textContent = words;
  if (focused) article.querySelector(".bar").focus();
  settle(article);
}

function settle(article) {
  const turn = String(Number(article.dataset.turn ?? 0) + 1);
  Object.assign(article.dataset, { turn, settled: "" });
  disable(article, ["change", "approve"]);
  setTimeout(() => {
    if (article.dataset.turn !== turn) return;
    article.dataset.settled = "yes";
    enable(article);
  }, SETTLE_MS);
}

function buttonsOf(article, ids = BUTTONS) {
  return ids.map((id) => article.querySelector(`#${id}`));
}

function enable(article) {
  const { outdated, settled, missing, busy } = article.dataset;
  showUnread(article);
  if (outdated || !settled || busy) return;
  const [deny, change, approve] = buttonsOf(article);
  deny.disabled = false;
  change.disabled = change.hidden;
  approve.disabled = approve.hidden || missing !== "" || unread(article).length > 0;
}

function disable(article, ids = BUTTONS) {
  buttonsOf(article, ids).forEach((button) => { button.disabled = true; });
}

async function act(article, button, held) {
  article.dataset.busy = "yes";
  try {
    return await (button === "change" ? change(article) : decide(article, button === "approve", held));
  } catch (problem) {
    return problem.message;
  } finally {
    delete article.dataset.busy;
  }
}

function decide(article, approved, held) {
  const { id, digest } = article.dataset;
  const reason = article.querySelector("#reason").value.trim();
  const decision = { approved, digest, ...(reason ? { reason } : {}), ...(held ? { not_before: new Date(now() + HOLD_MS).toISOString() } : {}), ...(approved ? approvalOf(article) : {}) };
  return send("POST", `/v1/action-approvals/${encodeURIComponent(id)}/decide`, decision);
}

// The person's own change is shown at once: it is theirs, and decided only when they have seen the whole of it.
async function change(article) {
  const { id, digest } = article.dataset;
  const args = argumentsOf(article);
  const trouble = await send("POST", `/v1/action-approvals/${encodeURIComponent(id)}/edit`, { args, digest });
  if (!trouble) {
    article.dataset.left = "yes";
    discard(article.querySelector("#edit"));
    article.querySelector("#edit").open = false;
  }
  return trouble;
}

// A ready reason is only filled in; what ends the session takes along what was typed.
function armReasons(article) {
  const reason = article.querySelector("#reason");
  article.querySelectorAll("[data-reason]").forEach((chip) => chip.addEventListener("click", () => {
    reason.value = chip.dataset.reason;
    reason.focus();
  }));
  article.addEventListener("click", ({ target }) => {
    const typed = reason.value.trim();
    if (typed && target.matches(".deny-all")) target.dataset.body = JSON.stringify({ reason: typed });
  }, { capture: true });
}

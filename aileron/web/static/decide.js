// Deciding one approval: what is sent names the digest of exactly what is in the page.

import { send } from "./act.js";
import { armEdit, edited } from "./edit.js";
import { armGrant, grantOf } from "./grant.js";
import { armLater, laterOf } from "./later.js";
import { armReading, showUnread, unread } from "./reading.js";

const SETTLE_MS = 500;
const APPROVING = ["approve", "approve-later", "allow"];

// Buttons come alive a moment after what they are about was shown, so that no click meant for something else decides.
export function armDecision(article, look) {
  if (!article.querySelector("#decision")) return;
  armReasons(article);
  armEdit(article);
  armLater(article);
  armGrant(article);
  armReading(article, () => article.dataset.settled && enable(article));
  setTimeout(() => {
    article.dataset.settled = "yes";
    enable(article);
  }, SETTLE_MS);
  buttonsOf(article).forEach((button) => button.addEventListener("click", async () => {
    disable(article);
    const trouble = await (button.id === "change" ? change(article) : decide(article, button.id));
    answerOf(button, article).textContent = trouble;
    if (trouble) {
      enable(article);
      button.focus();
    }
    if (!trouble) document.querySelector("h1").focus();
    await look();
  }));
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
  (article.querySelector(".bar > label") ?? article.firstElementChild).before(notice);
  if (atButton) button.focus();
}

function buttonsOf(article) {
  return [...article.querySelectorAll("#approve, #approve-later, #allow, #deny, #change")];
}

function enable(article) {
  if (article.dataset.outdated) return;
  const toRead = unread(article).length > 0;
  buttonsOf(article).forEach((button) => { button.disabled = toRead && APPROVING.includes(button.id); });
  showUnread(article);
}

function disable(article) {
  buttonsOf(article).forEach((button) => { button.disabled = true; });
}

function answerOf(button, article) {
  return button.id === "change" ? button.closest("details").querySelector(".answer") : article.querySelector("#answer");
}

async function decide(article, button) {
  const approved = button !== "deny";
  const decision = { approved, digest: article.dataset.digest };
  const reason = article.querySelector("#reason").value.trim();
  if (reason) decision.reason = reason;
  try {
    if (button === "allow") decision.grant = grantOf(article.querySelector("#grant"));
    if (button === "approve-later") decision.not_before = laterOf(article);
  } catch (problem) {
    return problem.message;
  }
  return send("POST", `/v1/action-approvals/${encodeURIComponent(article.dataset.id)}/decide`, decision);
}

// The person's own change is shown at once: it is theirs, and decided only when they have seen the whole of it.
async function change(article) {
  const { id, digest } = article.dataset;
  let args;
  try {
    args = edited(article.querySelector("#edit"));
  } catch (problem) {
    return problem.message;
  }
  const trouble = await send("POST", `/v1/action-approvals/${encodeURIComponent(id)}/edit`, { args, digest });
  if (!trouble) {
    article.dataset.left = "yes";
    article.querySelector("#edit").open = false;
  }
  return trouble;
}

// A ready reason is only filled in; what ends the session takes along what was typed.
function armReasons(article) {
  const reason = article.querySelector("#reason");
  const end = article.querySelector(".deny-all");
  const usual = end?.dataset.body;
  const follow = () => {
    if (end) end.dataset.body = reason.value.trim() ? JSON.stringify({ reason: reason.value.trim() }) : usual;
  };
  reason.addEventListener("input", follow);
  article.querySelectorAll("[data-reason]").forEach((chip) => chip.addEventListener("click", () => {
    reason.value = chip.dataset.reason;
    reason.focus();
    follow();
  }));
  follow();
}

// Deciding one approval: what is sent names the digest of exactly what is in the page.

import { send } from "./act.js";
import { grantOf } from "./grant.js";

const SETTLE_MS = 500;

// Buttons come alive a moment after what they are about was shown, so that no click meant for something else decides.
export function armDecision(article, look) {
  if (!article.querySelector("#decision")) return;
  setTimeout(() => enable(article), SETTLE_MS);
  buttonsOf(article).forEach((button) => button.addEventListener("click", async () => {
    disable(article);
    const trouble = await decide(article, button.id);
    article.querySelector("#answer").textContent = trouble;
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
  (article.querySelector("#decision") ?? article.firstElementChild).before(notice);
  if (atButton) button.focus();
}

function buttonsOf(article) {
  return [...article.querySelectorAll("#approve, #deny, #allow")];
}

function enable(article) {
  if (!article.dataset.outdated) buttonsOf(article).forEach((button) => { button.disabled = false; });
}

function disable(article) {
  buttonsOf(article).forEach((button) => { button.disabled = true; });
}

function decide(article, button) {
  const approved = button !== "deny";
  const { id, digest } = article.dataset;
  const grant = button === "allow" && grantOf(article.querySelector("#grant"));
  const reason = article.querySelector("#reason").value.trim();
  const decision = { approved, digest, ...(reason && { reason }), ...(grant && { grant }) };
  return send("POST", `/v1/action-approvals/${encodeURIComponent(id)}/decide`, decision);
}

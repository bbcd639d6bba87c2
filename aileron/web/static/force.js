// Approves a request alone, although others have to approve it. A dialog asks for the reason.

const SETTLE_MS = 500;
const READABLE = /[\p{L}\p{N}]/u; // the daemon takes no reason without one
const NO_GRANT = "Approving alone allows no similar calls. Close that section first.";
const ONE = "Only one request is approved alone. Clear “Decide all” first.";

// Add the handlers of the button and of its dialog, if this login may force an approval.
export function armForce(article, look, force) {
  const button = article.querySelector("#alone");
  if (!button) return;
  const [dialog, reason, answer, cancel, approve] = ["", "-reason", "-answer", "-cancel", "-approve"]
    .map((part) => article.querySelector(`#force${part}`));
  const follow = () => { approve.disabled = !dialog.dataset.settled || !READABLE.test(reason.value); };
  button.addEventListener("click", () => {
    const objection = objectionOf(article);
    article.querySelector("#answer").textContent = objection;
    if (objection) return;
    if (!reason.value) reason.value = article.querySelector("#reason").value;
    answer.textContent = "";
    dialog.showModal();
    setTimeout(() => { // a press may be meant for what was there before
      dialog.dataset.settled = "yes";
      follow();
    }, SETTLE_MS);
  });
  reason.addEventListener("input", follow);
  cancel.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    delete dialog.dataset.settled;
    follow();
    look();
  });
  approve.addEventListener("click", async () => {
    approve.disabled = true;
    answer.textContent = await force(reason.value.trim());
    if (!answer.textContent) return;
    follow();
    approve.focus();
  });
}

function objectionOf(article) {
  if (article.querySelector("#grant").open) return NO_GRANT;
  return article.querySelector(".identical input:checked") ? ONE : "";
}

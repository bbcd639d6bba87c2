// The buttons that verify the whole audit record, or save it as a file.

import { call } from "./key.js";
import { say } from "./view.js";

export function arm(root) {
  armButton(root.querySelector("#verify"), "Verifying…", verify);
  armButton(root.querySelector("#export"), "Exporting…", save);
}

function armButton(button, meanwhile, act) {
  if (!button) return;
  button.disabled = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    tell(meanwhile);
    tell(await act().catch(() => "The daemon did not respond. Nothing was changed. Try again."));
    button.disabled = false;
  });
}

// Show a message, if the audit page is still shown.
function tell(words) {
  if (document.getElementById("verdict")) say("verdict", words);
}

async function verify() {
  const answer = await call("/v1/audit/verify", { signal: new AbortController().signal });
  if (!answer?.ok) return refused(answer);
  const { sound, last, covered, broken } = await answer.json();
  if (!sound) return `Verification failed at record ${broken.sequence}: ${broken.kind}. ${broken.why}`;
  return `Verified: all ${last.toLocaleString()} records are intact. ${covered.toLocaleString()} are covered by a signature.`;
}

async function save() {
  const answer = await call("/v1/audit/export", { signal: new AbortController().signal });
  if (!answer?.ok) return refused(answer);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = "aileron-record.ndjson";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  return "Saved as aileron-record.ndjson. To check it on any machine, run: aileron audit verify aileron-record.ndjson";
}

async function refused(answer) {
  return answer ? (await answer.json()).error.message : "You are no longer logged in.";
}

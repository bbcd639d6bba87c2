// The whole record: looked along by the daemon, or saved as a file.

import { call } from "./key.js";
import { say } from "./view.js";

export function armRecord(root) {
  arm(root.querySelector("#verify"), "Looking along all of it…", verify);
  arm(root.querySelector("#export"), "Reading all of it…", save);
}

function arm(button, meanwhile, act) {
  if (!button) return;
  button.disabled = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    tell(meanwhile);
    tell(await act().catch(() => "The daemon did not answer. Nothing was changed; try it again."));
    button.disabled = false;
  });
}

// Unless the reader has gone elsewhere meanwhile.
function tell(words) {
  if (document.getElementById("verdict")) say("verdict", words);
}

async function verify() {
  const answer = await call("/v1/audit/verify", { signal: new AbortController().signal });
  if (!answer?.ok) return refused(answer);
  const { sound, last, covered, broken } = await answer.json();
  if (!sound) return `It does not hold: ${broken.kind} at record ${broken.sequence}. ${broken.why}`;
  return `It holds, all ${last.toLocaleString()} records of it; ${covered.toLocaleString()} are under a signature.`;
}

async function save() {
  const answer = await call("/v1/audit/export", { signal: new AbortController().signal });
  if (!answer?.ok) return refused(answer);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = "aileron-record.ndjson";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  return "Saved as aileron-record.ndjson. aileron audit verify checks it, on any machine.";
}

async function refused(answer) {
  return answer ? (await answer.json()).error.message : "You are no longer logged in.";
}

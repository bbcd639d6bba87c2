// Signs decisions: with this browser's key, or with a passkey by one touch for a whole list.

import { call, signText } from "./key.js";
import { assertion, digest } from "./passkey.js";

const TAG = "aileron.decision.v1";

// Return a decision, given as the body of its request, as a member of a list to sign.
export function itemOf(id, { approved, digest: shown, reason, not_before: begins, grant, forced }) {
  return {
    run: id,
    digest: shown,
    verdict: approved ? (forced ? "forced" : "approved") : "denied",
    reason: reason ?? null,
    not_before: begins ?? null,
    grant: grant ?? null,
  };
}

// Return the member `signed` of each request of the list, or undefined if nobody is logged in.
export function signByBrowser(items) {
  return signText((instance, nonce) => write(instance, nonce, items));
}

// Return the same with a passkey's answer, {error} if the daemon refused, or null if the passkey was not used.
export async function signByPasskey(items) {
  const answer = await call("/v1/operator/passkeys/ask", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: "{}",
  });
  if (!answer) return null;
  const told = await answer.json();
  if (!answer.ok) return { error: told.error };
  const statement = write(told.instance, told.nonce, items);
  const found = await assertion({ options: { ...told.options, challenge: await digest(statement) } });
  return found && { statement, credential: found.credential };
}

function write(instance, nonce, decisions) {
  return canonical([TAG, instance, nonce, { decisions }]);
}

// Return the canonical form (RFC 8785). JSON.stringify writes texts and numbers so, but does not sort keys.
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const keys = Object.keys(value).filter((key) => value[key] !== undefined).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

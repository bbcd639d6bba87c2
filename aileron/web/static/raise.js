// Lets a login that only watches decide again by one touch of a passkey. The key, the cookie and the address stay.

import { told } from "./act.js";
import { call } from "./key.js";
import { assertion } from "./passkey.js";

const PATH = "/v1/operator/raise";
const SILENT = "The daemon is not responding. Nothing was changed.";

// Have a passkey sign that this login may decide again. Return the error as text, or "".
export async function raise() {
  try {
    const asked = await post(`${PATH}/ask`, {});
    if (asked.trouble) return asked.trouble;
    const answered = await assertion(asked);
    if (!answered) return "Your passkey was not used, so you can only watch. Try again, or run aileron open.";
    return (await post(PATH, answered)).trouble ?? "";
  } catch (error) {
    return SILENT;
  }
}

async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  const answer = await call(path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer) return { trouble: "You are no longer logged in. Nothing was changed." };
  const found = await answer.json();
  return answer.ok ? found : { trouble: told(found.error) };
}

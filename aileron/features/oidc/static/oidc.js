// Signing in with a provider: the button that leads there, and the page to which the provider sends the browser back.

import { keep, makeKey, post } from "./key.js";

const LANDED = "aileron-landed";
const SILENT = "The daemon is not responding. Check the connection, then try again.";
const JSON_TYPE = { "Content-Type": "application/json" };
const button = document.getElementById("provider");

button?.addEventListener("click", async () => {
  button.disabled = true;
  tell("");
  const { told, trouble } = await ask("/signin/oidc/begin", {});
  if (told) location.assign(told.url);
  tell(trouble || "");
  button.disabled = false;
});

if (button) button.disabled = false;
if (document.querySelector("[data-does=return]")) comeBack();

async function comeBack() {
  const query = location.search.slice(1);
  // Out of the address bar, the history and the tab's storage at once: the code is for this page alone.
  history.replaceState(null, "", location.pathname);
  sessionStorage.removeItem(LANDED);
  const trouble = query ? await enter(query) : "Nothing came back from the provider.";
  if (!trouble) return;
  document.getElementById("wait").hidden = true;
  document.getElementById("again").hidden = false;
  tell(trouble);
}

// What went wrong, or nothing. Where the browser goes then is the same for everybody.
async function enter(query) {
  const key = await makeKey();
  const { told, trouble } = await ask("/signin/oidc", { query, public_key: key.point });
  if (!told) return trouble;
  await keep({ id: key.id, private: key.private, instance: told.instance });
  location.replace("/approvals");
  return "";
}

async function ask(path, body) {
  try {
    const answer = await post(path, JSON.stringify(body), JSON_TYPE);
    return answer.ok ? { told: await answer.json() } : { trouble: await answer.text() };
  } catch (error) {
    return { trouble: SILENT };
  }
}

function tell(words) {
  document.getElementById("trouble").textContent = words;
}

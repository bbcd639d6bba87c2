// The shell's script: it fetches what a page shows with the page key, and sends decisions.
// The page key lives in sessionStorage of this origin; other tabs of it are asked by BroadcastChannel.
"use strict";

const KEY = "aileron-page-key";
const HEADER = "X-Aileron-Proof";
const EVERY_MS = 2000;
const TAB_ANSWER_MS = 300;
const main = document.getElementById("main");
const live = document.getElementById("live");
const tabs = new BroadcastChannel("aileron-page-key");

tabs.onmessage = (message) => {
  const key = sessionStorage.getItem(KEY);
  if (message.data === "who has it?" && key) tabs.postMessage({ key });
};

function told() {
  const said = JSON.parse(document.documentElement.dataset.told || "{}");
  document.documentElement.removeAttribute("data-told");
  return said;
}

function askOtherTabs() {
  return new Promise((resolve) => {
    const asking = new BroadcastChannel("aileron-page-key");
    const end = (key) => { asking.close(); resolve(key); };
    asking.onmessage = (message) => { if (message.data && message.data.key) end(message.data.key); };
    setTimeout(() => end(null), TAB_ANSWER_MS);
    asking.postMessage("who has it?");
  });
}

function call(path, options = {}) {
  const headers = { [HEADER]: sessionStorage.getItem(KEY) || "", ...(options.headers || {}) };
  return fetch(path, { ...options, headers, credentials: "same-origin", cache: "no-store", redirect: "error" });
}

function showTemplate(id) {
  main.replaceChildren(document.getElementById(id).content.cloneNode(true));
}

let lastShown = "";

async function show() {
  const path = location.pathname === "/" ? "/approvals" : location.pathname;
  let answer;
  try {
    answer = await call("/fragments" + path);
  } catch (error) {
    live.textContent = "The daemon does not answer; what waits is kept.";
    return;
  }
  live.textContent = "";
  if (answer.status === 401) return logOut();
  if (!answer.ok) return showTemplate("not-here");
  const text = await answer.text();
  if (text === lastShown) return;
  const page = new DOMParser().parseFromString(text, "text/html");
  const before = main.querySelector("[data-digest]");
  const now = page.querySelector("[data-digest]");
  const reason = main.querySelector("#reason");
  const typed = reason ? reason.value : "";
  lastShown = text;
  main.replaceChildren(...page.body.childNodes);
  if (now) prepareDecision(now, typed, before && before.dataset.digest !== now.dataset.digest);
  const list = main.querySelector("[data-pending]");
  document.title = list && list.dataset.pending !== "0" ? `(${list.dataset.pending}) Aileron` : "Aileron";
}

function logOut() {
  sessionStorage.removeItem(KEY);
  lastShown = "";
  showTemplate("no-session");
}

function prepareDecision(shown, typed, changed) {
  const reason = main.querySelector("#reason");
  if (!reason) return;
  reason.value = typed;
  if (changed) main.querySelector("#said").textContent = "This changed just now: look at it again.";
  main.querySelector("#approve").addEventListener("click", () => decide(shown, true));
  main.querySelector("#deny").addEventListener("click", () => decide(shown, false));
}

async function decide(shown, approved) {
  const said = main.querySelector("#said");
  const buttons = main.querySelectorAll("button");
  buttons.forEach((button) => { button.disabled = true; });
  const reason = main.querySelector("#reason").value;
  const body = { approved, digest: shown.dataset.digest, ...(reason ? { reason } : {}) };
  try {
    const answer = await call(`/v1/action-approvals/${shown.dataset.id}/decide`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
    if (answer.status === 401) return logOut();
    if (!answer.ok) said.textContent = (await answer.json()).error.message;
  } catch (error) {
    said.textContent = "The daemon did not answer. Look here again: a decision that arrived is kept.";
  }
  buttons.forEach((button) => { button.disabled = false; });
  lastShown = "";
  const message = said.textContent;
  await show();
  const place = main.querySelector("#said");
  if (place && message) place.textContent = message;
}

async function begin() {
  const said = told();
  if (said["page-key"]) {
    sessionStorage.setItem(KEY, said["page-key"]);
    history.replaceState(null, "", said.next);
  } else if (said.refused) {
    history.replaceState(null, "", "/approvals");
  } else if (said.missing) {
    return showTemplate("not-here");
  }
  if (!sessionStorage.getItem(KEY)) {
    const key = await askOtherTabs();
    if (!key) return showTemplate("no-session");
    sessionStorage.setItem(KEY, key);
  }
  await show();
  setInterval(() => { if (sessionStorage.getItem(KEY)) show(); }, EVERY_MS);
}

begin();

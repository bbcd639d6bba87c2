// What a button does: one request, whose method, path and body stand in the page; a form adds what was typed.
//
// <button data-act="POST /v1/runs/x/resolve" data-body='{"outcome": "happened"}' data-sure="Confirm: mark as completed">
// <form data-act="POST /v1/x" data-body='…'>, fields by name, and a button that sends it
// <button data-act="POST /v1/runs/x/undo" data-leads="/approvals/"> opens the page of what was made, by its ID
// What went wrong is shown in the nearest .answer.

import { call } from "./key.js";
import { assertion } from "./passkey.js";

const SETTLE_MS = 500;
const ADVICE = JSON.parse(document.getElementById("advice").dataset.advice);
const SAID = /nothing|not sent/i;
const NAMED = /aileron /;
const NOTHING = { place: "", act: "", trouble: "" };
const calm = new WeakMap();
let last = NOTHING;

// Buttons come alive a moment after what they are about was shown, so that no click meant for something else acts.
export function armActs(root, changed) {
  for (const button of root.querySelectorAll("button[data-act]")) {
    arm(button, button, changed, () => JSON.parse(button.dataset.body || "{}"));
  }
  for (const form of root.querySelectorAll("form[data-act]")) {
    const button = form.querySelector("button:not([type=button])");
    arm(form, button, changed, () => ({ ...JSON.parse(form.dataset.body || "{}"), ...given(form) }));
  }
  const place = placeOfLast(root);
  if (place && !place.textContent) place.textContent = last.trouble;
}

// The place of the last error, as long as the button that caused it is there; another page means that it was read.
function placeOfLast(root) {
  if (last.place !== location.pathname) last = NOTHING;
  const tried = [...root.querySelectorAll("[data-act]")].find((element) => element.dataset.act === last.act);
  return tried && placeOf(tried);
}

// One request; what went wrong, in words, or nothing.
export async function send(method, path, body, leads = "") {
  try {
    const answer = await callJSON(method, path, body);
    if (!answer) return "You are no longer logged in. Nothing was changed.";
    if (answer.ok && leads) location.assign(leads + encodeURIComponent((await answer.json()).id));
    if (answer.ok) return "";
    const { error } = await answer.json();
    return error.details?.passkey && !body.passkey ? await withPasskey(method, path, body) : told(error);
  } catch (error) {
    return "The daemon did not respond. This page will show whether the change was made.";
  }
}

// The same, with a passkey that signs exactly this.
async function withPasskey(method, path, body) {
  const answer = await callJSON("POST", path.replace(/decide$/, "passkey"), body);
  if (!answer?.ok) return answer ? told((await answer.json()).error) : "You are no longer logged in. Nothing was decided.";
  const passkey = await assertion(await answer.json());
  return passkey ? send(method, path, { ...body, passkey }) : "Your passkey was not used. Nothing was decided.";
}

// A run that takes longer than the wait is answered as still running, before the page would give up on the daemon.
export function callJSON(method, path, body) {
  const headers = { "Content-Type": "application/json", Prefer: "wait=10" };
  return call(path, { method, headers, body: JSON.stringify(body) });
}

// What happened, what was kept, and what to do.
export function told({ message, details, class: kind }) {
  const problems = (details?.problems ?? []).map((each) => `${each.pointer} ${each.message}.`);
  const [kept, then] = ADVICE[kind] ?? ["", ""];
  return [message, ...problems, SAID.test(message) ? "" : kept, NAMED.test(message) ? "" : then].filter(Boolean).join(" ");
}

function arm(element, button, changed, body) {
  setTimeout(() => { button.disabled = false; }, SETTLE_MS);
  element.addEventListener(element === button ? "click" : "submit", async (event) => {
    event.preventDefault();
    if (button.disabled || (element.dataset.sure && !isSure(button, element.dataset.sure))) return;
    button.disabled = true;
    const [method, path] = element.dataset.act.split(" ");
    const place = location.pathname;
    const trouble = await send(method, path, body(), element.dataset.leads);
    last = { place, act: element.dataset.act, trouble };
    const told = placeOfLast(document);
    if (told) told.textContent = trouble;
    if (trouble) {
      button.disabled = false;
      button.focus();
    }
    await changed();
  });
}

// The second click means it: the first one shows what it means.
function isSure(button, question) {
  if (button.dataset.asked) {
    calm.get(button)();
    return true;
  }
  const words = button.textContent;
  const over = () => {
    clearTimeout(timer);
    delete button.dataset.asked;
    button.textContent = words;
  };
  const timer = setTimeout(over, 20 * SETTLE_MS);
  calm.set(button, over);
  button.dataset.asked = "yes";
  button.textContent = question;
  button.disabled = true;  // which takes the focus from it
  setTimeout(() => {
    button.disabled = false;
    if (document.activeElement === document.body) button.focus();
  }, SETTLE_MS);
  return false;
}

function placeOf(element) {
  for (let place = element; place; place = place.parentElement) {
    const answer = place.querySelector(".answer");
    if (answer) return answer;
  }
  return document.getElementById("trouble");
}

function given(form) {
  const fields = [...form.elements].filter((each) => each.name && (each.type !== "radio" || each.checked));
  return Object.fromEntries(fields.map((each) => [each.name, valueOf(each)]).filter(([, value]) => value !== null));
}

function valueOf(field) {
  if (field.type === "checkbox") return field.checked;
  if (field.value === "") return null;
  return field.type === "number" ? field.valueAsNumber : field.value;
}

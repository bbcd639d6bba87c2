// What a button does: one request, whose method, path and body stand in the page; a form adds what was typed.
//
// <button data-act="POST /v1/runs/x/resolve" data-body='{"outcome": "happened"}' data-sure="Has it really happened?">
// <form data-act="POST /v1/x" data-body='…'>, fields by name, and a button that sends it
// What went wrong is shown in the nearest .answer.

import { call } from "./key.js";
import { assertion } from "./passkey.js";

const SETTLE_MS = 500;
const ADVICE = JSON.parse(document.getElementById("advice").dataset.advice);
const SAID = /nothing|not sent/i;
let last = { place: "", act: "", trouble: "" };

// Buttons come alive a moment after what they are about was shown, so that no click meant for something else acts.
export function armActs(root, changed) {
  for (const button of root.querySelectorAll("button[data-act]")) {
    arm(button, button, changed, () => JSON.parse(button.dataset.body || "{}"));
  }
  for (const form of root.querySelectorAll("form[data-act]")) {
    const button = form.querySelector("button:not([type=button])");
    arm(form, button, changed, () => ({ ...JSON.parse(form.dataset.body || "{}"), ...given(form) }));
  }
  tellLast(root);
}

// What went wrong last, also after the page was filled anew, as long as what was tried still stands there.
function tellLast(root) {
  if (last.place !== location.pathname) return;
  const tried = [...root.querySelectorAll("[data-act]")].find((element) => element.dataset.act === last.act);
  if (tried) placeOf(tried).textContent = last.trouble;
}

// One request; what went wrong, in words, or nothing.
export async function send(method, path, body) {
  try {
    const answer = await callJSON(method, path, body);
    if (!answer) return "Nobody is logged in any more; nothing was changed.";
    if (answer.ok) return "";
    const { error } = await answer.json();
    return error.details?.passkey && !body.passkey ? await withPasskey(method, path, body) : told(error);
  } catch (error) {
    return "The daemon did not answer. This page will show whether your word arrived.";
  }
}

// The same, with a passkey that signs exactly this.
async function withPasskey(method, path, body) {
  const answer = await callJSON("POST", path.replace(/decide$/, "passkey"), body);
  if (!answer?.ok) return answer ? told((await answer.json()).error) : "Nobody is logged in any more.";
  const passkey = await assertion(await answer.json());
  return passkey ? send(method, path, { ...body, passkey }) : "Your passkey was not used, so nothing was decided.";
}

function callJSON(method, path, body) {
  return call(path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

// What happened, what was kept, and what to do.
function told({ message, details, class: kind }) {
  const problems = (details?.problems ?? []).map((each) => `${each.pointer} ${each.message}.`);
  const [kept, then] = ADVICE[kind] ?? ["", ""];
  return [message, ...problems, SAID.test(message) ? "" : kept, then].filter(Boolean).join(" ");
}

function arm(element, button, changed, body) {
  setTimeout(() => { button.disabled = false; }, SETTLE_MS);
  element.addEventListener(element === button ? "click" : "submit", async (event) => {
    event.preventDefault();
    if (button.disabled || (element.dataset.sure && !isSure(button, element.dataset.sure))) return;
    button.disabled = true;
    const [method, path] = element.dataset.act.split(" ");
    const place = location.pathname;
    const trouble = await send(method, path, body());
    last = { place, act: element.dataset.act, trouble };
    tellLast(document);
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
    delete button.dataset.asked;
    return true;
  }
  const words = button.textContent;
  button.dataset.asked = "yes";
  button.textContent = question;
  button.disabled = true;
  setTimeout(() => { button.disabled = false; }, SETTLE_MS);
  setTimeout(() => {
    delete button.dataset.asked;
    button.textContent = words;
  }, 20 * SETTLE_MS);
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

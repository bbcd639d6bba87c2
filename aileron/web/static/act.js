// Buttons and forms that send one request. The page declares its method, path and body; a form adds its fields.
//
// <button data-act="POST /v1/runs/x/resolve" data-body='{"outcome": "happened"}' data-sure="Confirm: mark as completed">
// <form data-act="POST /v1/x" data-body='…'>, fields by name, and a button that sends it
// <button data-act="POST /v1/runs/x/undo" data-leads="/approvals/"> then opens the created object's page, by its ID
// <button data-act="…" data-with="settling"> adds the fields of the element with this ID
// An error is shown in the nearest .answer.

import { call } from "./key.js";
import { followLevel, onlyWatches } from "./level.js";
import { assertion } from "./passkey.js";
import { itemOf, signByBrowser } from "./sign.js";

const SETTLE_MS = 500;
const ADVICE = JSON.parse(document.getElementById("advice").dataset.advice);
const SAID = /nothing|not sent/i;
const NAMED = /aileron /;
const NOTHING = { place: "", act: "", trouble: "" };
const calm = new WeakMap();
const armed = new WeakSet();
let last = NOTHING;

// Add the click and submit handlers. A button is enabled only a moment after it appears, so that a click meant for
// something else does nothing.
export function armActs(root, changed) {
  for (const button of root.querySelectorAll("button[data-act]")) {
    arm(button, button, changed, () => ({ ...JSON.parse(button.dataset.body || "{}"), ...given(document.getElementById(button.dataset.with)) }));
  }
  for (const form of root.querySelectorAll("form[data-act]")) {
    const button = form.querySelector("button:not([type=button])");
    arm(form, button, changed, () => ({ ...JSON.parse(form.dataset.body || "{}"), ...given(form) }));
  }
  const place = placeOfLast(root);
  if (place && !place.textContent) place.textContent = last.trouble;
}

// Return the element that shows the last error, while the button that caused it is on the page. On another page, forget
// the error.
function placeOfLast(root) {
  if (last.place !== location.pathname) last = NOTHING;
  const tried = [...root.querySelectorAll("[data-act]")].find((element) => element.dataset.act === last.act);
  return tried && placeOf(tried);
}

// Send one request. Return the error as text, or "" if it succeeded.
export async function send(method, path, body, leads = "") {
  const { trouble, needsPasskey } = await attempt(method, path, await signed(path, body), leads);
  return needsPasskey && !body.passkey ? withPasskey(method, path, body) : trouble;
}

// Send one request. Return the error as text, or "", and whether the request needs a passkey.
export async function attempt(method, path, body, leads = "") {
  try {
    const answer = await callJSON(method, path, body);
    if (!answer) return { trouble: "You are no longer logged in. Nothing was changed." };
    if (answer.ok && leads) location.assign(leads + encodeURIComponent((await answer.json()).id));
    if (answer.ok) return { trouble: "" };
    const { error } = await answer.json();
    return { trouble: told(error), needsPasskey: error.details?.passkey === true };
  } catch (error) {
    return { trouble: "The daemon did not respond. This page will show whether the change was made." };
  }
}

// Add the signature of this browser's key to the body of a decision, unless a passkey has signed it.
async function signed(path, body) {
  const [, id] = path.match(/^\/v1\/action-approvals\/([^/]+)\/decide$/) ?? [];
  if (!id || body.signed || body.passkey) return body;
  return { ...body, signed: await signByBrowser([itemOf(decodeURIComponent(id), body)]) };
}

// Send the request again with the signature of a passkey over exactly this body.
async function withPasskey(method, path, body) {
  const answer = await callJSON("POST", path.replace(/decide$/, "passkey"), body);
  if (!answer?.ok) return answer ? told((await answer.json()).error) : "You are no longer logged in. Nothing was decided.";
  const passkey = await assertion(await answer.json());
  return passkey ? send(method, path, { ...body, passkey }) : "Your passkey was not used. Nothing was decided.";
}

// Send a request with a JSON body. If a run takes longer than the wait, the daemon answers that it is still running,
// before the request times out.
export function callJSON(method, path, body) {
  const headers = { "Content-Type": "application/json", Prefer: "wait=10" };
  return call(path, { method, headers, body: JSON.stringify(body) });
}

// Return an error as text: what happened, what was not changed, and what to do next.
export function told({ message, details, class: kind }) {
  const problems = (details?.problems ?? []).map((each) => `${each.pointer} ${each.message}.`);
  const [kept, then] = ADVICE[kind] ?? ["", ""];
  return [message, ...problems, SAID.test(message) ? "" : kept, NAMED.test(message) ? "" : then].filter(Boolean).join(" ");
}

function arm(element, button, changed, body) {
  if (armed.has(element)) return; // a row that was kept
  armed.add(element);
  const { decides } = element.dataset;
  const wake = () => { button.disabled = Boolean(decides) && onlyWatches(); };
  setTimeout(wake, SETTLE_MS);
  if (decides) followLevel(button, wake);
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
    if (!trouble && button.isConnected) setTimeout(wake, SETTLE_MS);
  });
}

// Return true for the second click. The first click replaces the button's label by the question.
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
  button.disabled = true;  // the button loses the focus
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

// Return the values of the fields in an element, by name.
function given(place) {
  const all = [...place?.querySelectorAll("input, select, textarea") ?? []];
  const fields = all.filter((each) => each.name && (each.type !== "radio" || each.checked));
  return Object.fromEntries(fields.map((each) => [each.name, valueOf(each)]).filter(([, value]) => value !== null));
}

function valueOf(field) {
  if (field.type === "checkbox") return field.checked;
  if (field.value === "") return null;
  return field.type === "number" ? field.valueAsNumber : field.value;
}

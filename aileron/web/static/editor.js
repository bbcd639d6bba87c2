// The editor of actions, and the form that previews a call. Unsaved text is kept in memory, with the digest of the file
// that it was based on, while the page is redrawn, or left and opened again.

import { callJSON, told } from "./act.js";
import { drafts } from "./drafts.js";
import { armEdit, edited } from "./edit.js";
import { parse } from "./view.js";

const MOVED = "The file was changed since you opened it. Nothing was saved. Copy your text, then reload the page.";

export function arm(root) {
  armEditor(root);
  armTry(root);
}

function armEditor(root) {
  const form = root.querySelector("#editor");
  if (!form) return;
  const text = form.querySelector("#action-text");
  const draft = begin(form.dataset);
  text.value = draft.text;
  text.addEventListener("input", () => { draft.text = text.value; });
  form.querySelector("#check").addEventListener("click", () => act(form, draft, check));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    act(form, draft, save);
  });
  show(form, draft);
}

// Return the draft of the page's file: the unsaved one if there is one, else a new one with the text on disk.
function begin({ name, text, before }) {
  const path = location.pathname;
  const known = drafts.get(path);
  const file = { path, name, text: JSON.parse(text), before: JSON.parse(before) };
  if (known && (known.text !== known.saved || known.before === file.before)) return known;
  const draft = { ...file, saved: file.text, said: "", faults: [], next: "" };
  drafts.set(path, draft);
  return draft;
}

async function act(form, draft, what) {
  if (draft.busy) return;
  draft.busy = true;
  Object.assign(draft, { said: "", faults: [], next: "" }, await what(draft).catch((problem) => ({ said: problem.message })));
  draft.busy = false;
  show(document.querySelector("#editor") ?? form, draft);
}

async function check({ text }) {
  const { name, faults } = await ask("POST", "/v1/actions/check", { text });
  return { name, faults, said: name ? "No errors found." : `Errors found: ${faults.length}.` };
}

// Check the text and save it. A new file gets the name that its text declares, and the page gets that file's URL.
async function save(draft) {
  const { text, before } = draft;
  const checked = await check(draft);
  if (!checked.name) return { ...checked, said: `${checked.said} Nothing was saved.` };
  const name = draft.name || checked.name;
  const saved = await ask("PUT", `/v1/actions/${name}/file`, { text, before });
  Object.assign(draft, { name, saved: text, before: saved.digest });
  if (before === null) move(draft, `/actions/${name}/edit`);
  return { said: "Saved. Not active until you trust it.", next: saved.name };
}

function move(draft, path) {
  if (location.pathname === draft.path) history.replaceState(null, "", path);
  drafts.delete(draft.path);
  drafts.set(path, Object.assign(draft, { path }));
}

async function ask(method, path, body) {
  const answer = await callJSON(method, path, body).catch(() => {
    throw new Error("The daemon did not respond. Your text is still here: save it again.");
  });
  if (!answer) throw new Error("You are no longer logged in. Nothing was saved.");
  const found = await answer.json();
  if (answer.ok) return found;
  throw new Error(answer.status === 409 ? MOVED : told(found.error));
}

function show(form, { said, faults, next }) {
  form.querySelector("#judged").textContent = said;
  form.querySelector("#faults").replaceChildren(...faults.map((fault, number) => item(form, fault, number)));
  form.querySelector("#next").hidden = !next;
  form.querySelector("#to-try").href = `/actions/${next}/try`;
  form.querySelector("#to-trust").href = `/trust?action=${next}`;
}

// Return the list item of an error, with a button that selects its line.
function item(form, { line, message }, number) {
  const found = document.createElement("li");
  const button = Object.assign(document.createElement("button"), {
    type: "button", className: "small", id: `fault-${number}`, textContent: `Line ${line ?? 1}`,
  });
  button.addEventListener("click", () => {
    const text = form.querySelector("#action-text");
    const lines = text.value.split("\n");
    const start = lines.slice(0, (line ?? 1) - 1).reduce((sum, each) => sum + each.length + 1, 0);
    text.focus();
    text.setSelectionRange(start, start + (lines[(line ?? 1) - 1] ?? "").length);
  });
  found.append(button, ` ${message}`);
  return found;
}

// Add the handler of the preview form. The daemon draws the requests that would be sent, as in an approval.
function armTry(root) {
  const form = root.querySelector("form[data-try]");
  if (!form) return;
  armEdit(root);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const drawn = await draw(form).catch((problem) => problem);
    const failed = drawn instanceof Error;
    form.querySelector(".answer").textContent = failed ? drawn.message : "";
    root.querySelector("#result").replaceChildren(...(failed ? [] : [drawn]));
    root.querySelector("#result h2")?.focus();
  });
}

async function draw(form) {
  const answer = await callJSON("POST", form.dataset.try, edited(form));
  if (!answer) throw new Error("You are no longer logged in.");
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return parse(text);
}

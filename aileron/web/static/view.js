// What is in the page: put there whole, with the reader's focus, text and place kept.

const main = document.getElementById("main");
let place = "";

// What was typed or chosen on one page is no word about what another shows.
export function show(nodes) {
  const focused = document.activeElement;
  const inside = main.contains(focused);
  const mark = inside && markOf(focused);
  const here = location.pathname + location.search;
  const left = place === here ? remember() : [];
  place = here;
  main.replaceChildren(...nodes);
  main.querySelectorAll("time").forEach(localise);
  left.forEach((restore) => restore());
  if (inside) ((mark && main.querySelector(mark)) || main.querySelector("h1")).focus({ preventScroll: true });
}

// What the reader typed, chose, opened or scrolled, and what came of what they asked for, each by its id.
function remember() {
  const found = [...main.querySelectorAll("[id]")].map((element) => [element.id, stateOf(element)]);
  return found.filter(([, state]) => state).map(([id, state]) => () => {
    const element = main.querySelector(`#${CSS.escape(id)}`);
    if (element) Object.assign(element, state);
  });
}

function stateOf(element) {
  if (element.matches("textarea, input:not([type=checkbox], [type=radio])")) {
    const { value, selectionStart, selectionEnd } = element;
    if (value === element.defaultValue) return null;
    return selectionStart === null ? { value } : { value, selectionStart, selectionEnd };
  }
  if (element.matches("input")) return element.checked === element.defaultChecked ? null : { checked: element.checked };
  if (element.matches("select")) return { value: element.value };
  if (element.matches("details")) return { open: element.open };
  if (element.matches("output, .answer")) {
    return element.closest("[data-left]") ? null : { textContent: element.textContent }; // another question comes there
  }
  return element.scrollTop ? { scrollTop: element.scrollTop } : null;
}

export function showTemplate(id) {
  if (main.dataset.template !== id) {
    show([document.getElementById(id).content.cloneNode(true)]);
  }
  main.dataset.template = id;
}

export function showFragment(text) {
  const root = parse(text);
  delete main.dataset.template;
  show([root]);
  say("said", root.dataset.said);
  return root;
}

// A document without a browsing context: whatever it holds, nothing in it runs.
export function parse(text) {
  return new DOMParser().parseFromString(text, "text/html").body.firstElementChild;
}

export function say(id, words) {
  const place = document.getElementById(id);
  if (place.textContent !== words) place.textContent = words;
}

function markOf(element) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  return element.hasAttribute("href") && `a[href="${CSS.escape(element.getAttribute("href"))}"]`;
}

function localise(element) {
  element.title = element.dateTime;
  element.textContent = new Date(element.dateTime).toLocaleString();
}

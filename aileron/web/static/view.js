// What is in the page: put there whole, with the reader's focus, text and place kept.

const main = document.getElementById("main");

export function show(nodes) {
  const focused = document.activeElement;
  const inside = main.contains(focused);
  const mark = inside && markOf(focused);
  const typed = read(main.querySelector("textarea"));
  main.replaceChildren(...nodes);
  main.querySelectorAll("time").forEach(localise);
  write(main.querySelector("textarea"), typed);
  if (inside) ((mark && main.querySelector(mark)) || main.querySelector("h1")).focus({ preventScroll: true });
}

export function showTemplate(id) {
  if (main.dataset.template !== id) {
    show([document.getElementById(id).content.cloneNode(true)]);
    document.title = "Aileron";
  }
  main.dataset.template = id;
}

export function showFragment(text) {
  const root = parse(text);
  delete main.dataset.template;
  show([root]);
  document.title = root.dataset.title;
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

function read(area) {
  return area && [area.value, area.selectionStart, area.selectionEnd];
}

function write(area, typed) {
  if (!area || !typed) return;
  area.value = typed[0];
  area.setSelectionRange(typed[1], typed[2]);
}

function localise(element) {
  element.title = element.dateTime;
  element.textContent = new Date(element.dateTime).toLocaleString();
}

// Nobody approves what was never on the screen: each text, warning and request counts as read when its end was there,
// once.  What lies behind the bar with the buttons, or behind a notice, is not on the screen.

const PARTS = ".text, .difference, .note:not(:empty), .warnings li:not(:has(.chip:empty)), #steps > li > p, "
  + "#steps > li > details > summary > code, .summary, .stale";
const MOST_NAMED = 2;
const read = new Set();
let watched = new Map();
let eye = null;
let size = null;
let again = () => {};
addEventListener("resize", () => again());

// Each part of the question that is not folded away; told whenever one of them was read.
export function armReading(article, told) {
  size?.disconnect();
  watched = new Map(partsOf(article).map((part) => [endOf(part), part]));
  const bar = article.querySelector(".bar");
  again = () => {
    document.documentElement.style.setProperty("--bar", `${bar.offsetHeight}px`);
    watch(article, told, bar);
  };
  size = new ResizeObserver(again);
  [bar, document.getElementById("notices")].forEach((each) => size.observe(each));
  showUnread(article);
}

function partsOf(article) {
  return [...article.querySelectorAll(PARTS)].filter((part) => isOpen(article, part));
}

// What is folded away repeats what stands open: see the daemon's drawing.  The line above a fold is not folded away.
function isOpen(article, part) {
  const fold = (part.closest("summary")?.parentElement.parentElement ?? part).closest("details");
  return !part.closest(".bar") && !(fold && article.contains(fold)) && part.checkVisibility();
}

function endOf(part) {
  const end = part.querySelector(":scope > .end") ?? Object.assign(document.createElement("span"), { className: "end" });
  if (!end.isConnected) part.append(end);
  return end;
}

function watch(article, told, bar) {
  eye?.disconnect();
  eye = new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting).forEach((entry) => seen(article, entry.target));
    told();
  }, { rootMargin: `-${coveredAbove()}px 0px -${coveredBelow(bar)}px` });
  watched.forEach((part, end) => eye.observe(end));
}

// On a narrow screen the notices stay below the bar with the pages, which stays above.
function coveredAbove() {
  const notices = document.getElementById("notices");
  return Math.ceil(notices.offsetHeight + (parseFloat(getComputedStyle(notices).top) || 0));
}

// How much of the window's lower edge the bar may cover.
function coveredBelow(bar) {
  const { position, bottom } = getComputedStyle(bar);
  return position === "fixed" ? Math.ceil(bar.offsetHeight + parseFloat(bottom)) : 0;
}

// The parts whose end was not seen yet, as they are shown now.
export function unread(article) {
  return [...watched.values()].filter((part) => article.contains(part) && !read.has(keyOf(article, part)));
}

export function showUnread(article) {
  const place = article.querySelector("#unread");
  const parts = unread(article);
  parts.forEach((part) => {
    part.classList.add("unread");
    if (!part.hasAttribute("tabindex")) part.tabIndex = -1;
  });
  const named = new Map(parts.map((part) => [nameOf(part), part]).reverse());
  const names = [...named.keys()].reverse();
  const words = names.join();
  if (!place || place.dataset.names === words) return;
  place.dataset.names = words;
  const links = names.slice(0, MOST_NAMED).flatMap((name, index) => [index ? ", " : "", linkTo(named.get(name), name)]);
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "";
  place.replaceChildren(...(parts.length ? ["Before you approve, read to the end: ", ...links, more] : []));
}

function seen(article, end) {
  const part = watched.get(end);
  read.add(keyOf(article, part));
  part.classList.remove("unread");
  eye.unobserve(end);
}

// What was read counts for exactly this text: another digest is another text, and so is another warning.
function keyOf(article, part) {
  return `${article.dataset.digest} ${part.id || part.textContent}`;
}

// As the page calls it: by its own label, or by what stands above it.
function nameOf(part) {
  if (part.dataset.label) return part.dataset.label;
  const label = part.closest("div:has(> dt)")?.querySelector("dt")?.firstChild;
  const heading = part.closest("#steps") ? "Requests" : part.closest("section")?.querySelector("h2")?.textContent;
  return label?.textContent.trim() || heading || "Description";
}

function linkTo(part, name) {
  const link = document.createElement("a");
  link.href = part.id ? `#${part.id}` : "#main";
  link.textContent = name;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    part.scrollIntoView({ block: "center" });
    part.focus({ preventScroll: true });
  });
  return link;
}

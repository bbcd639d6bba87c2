// Requires that the whole request was on the screen before it can be approved. Each text, warning and request counts as
// read once its end was visible. Content behind the button bar or a notice does not count as visible.

const PARTS = ".text, .difference, .note:has(> :not(:empty)), .warnings li:not(:has(.chip:empty)), #steps > li > p, "
  + "#steps > li > details > summary > code, .stale";
const MOST_NAMED = 2;
const read = new Set();
let watched = new Map();
let eye = null;
let size = null;
let again = () => {};
addEventListener("resize", () => again());

// Watch each unfolded part of the request, and call told whenever one was read.
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

// Return whether the part is outside every fold. A fold only repeats content shown elsewhere; its summary line counts as
// outside.
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

// Return the height covered at the top of the window. On a narrow screen the notices are below the navigation bar.
function coveredAbove() {
  const notices = document.getElementById("notices");
  return Math.ceil(notices.offsetHeight + (parseFloat(getComputedStyle(notices).top) || 0));
}

// Return the height that the button bar covers at the bottom of the window.
function coveredBelow(bar) {
  const { position, bottom } = getComputedStyle(bar);
  return position === "fixed" ? Math.ceil(bar.offsetHeight + parseFloat(bottom)) : 0;
}

// Return the parts on the page whose end was not visible yet.
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

// Return the key under which a part counts as read. It includes the digest, so a changed request has to be read again.
function keyOf(article, part) {
  return `${article.dataset.digest} ${part.id || part.textContent}`;
}

// Return the name of a part for the reader: its label, or else the heading above it.
function nameOf(part) {
  if (part.dataset.label) return part.dataset.label;
  const label = part.closest("div:has(> dt)")?.querySelector("dt")?.firstChild;
  const heading = part.closest("#steps") ? "Requests" : part.closest("section")?.querySelector("h2")?.textContent;
  return label?.textContent.trim() || heading || "Notice";
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

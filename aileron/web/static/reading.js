// Nobody approves what they have not read: a long text counts as read when its end was on the screen, once.
// What lies behind the bar with the buttons is not on the screen.

const read = new Set();
let watched = new Map();
let eye = null;
let size = null;
let again = () => {};
addEventListener("resize", () => again());

// Each text that must be read, by what it is called; told whenever one of them was.
export function armReading(article, told) {
  size?.disconnect();
  watched = new Map([...article.querySelectorAll("[data-must-read=yes]")].map((box) => [box.querySelector(".end"), box]));
  const bar = article.querySelector(".bar");
  again = () => watch(article, told, covered(bar));
  size = new ResizeObserver(again);
  [bar, document.getElementById("notices")].forEach((each) => size.observe(each));
  showUnread(article);
}

function watch(article, told, hidden) {
  eye?.disconnect();
  eye = new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting).forEach((entry) => seen(article, entry.target));
    told();
  }, { rootMargin: `0px 0px -${hidden}px` });
  watched.forEach((box, end) => eye.observe(end));
}

// How much of the window's lower edge the bar may cover.
function covered(bar) {
  const { position, bottom } = getComputedStyle(bar);
  return position === "sticky" ? Math.ceil(bar.offsetHeight + parseFloat(bottom)) : 0;
}

// The boxes whose end was not seen yet, as they are shown now.
export function unread(article) {
  return [...article.querySelectorAll("[data-must-read=yes]")].filter((box) => !read.has(keyOf(article, box)));
}

export function showUnread(article) {
  const place = article.querySelector("#unread");
  const boxes = unread(article);
  boxes.forEach((box) => box.classList.add("unread"));
  if (!place || place.dataset.boxes === String(boxes.map((box) => box.id))) return;
  place.dataset.boxes = boxes.map((box) => box.id);
  const links = boxes.flatMap((box, index) => [index ? ", " : "", linkTo(box)]);
  place.replaceChildren(...(boxes.length ? ["Before you approve, read to the end: ", ...links] : []));
}

function seen(article, end) {
  const box = watched.get(end);
  read.add(keyOf(article, box));
  box.classList.remove("unread");
  eye.unobserve(end);
}

// What was read counts for exactly this text: another digest is another text.
function keyOf(article, box) {
  return `${article.dataset.digest} ${box.id}`;
}

function linkTo(box) {
  const link = document.createElement("a");
  link.href = `#${box.id}`;
  link.textContent = box.dataset.label;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    box.scrollIntoView({ block: "center" });
    box.focus({ preventScroll: true });
  });
  return link;
}

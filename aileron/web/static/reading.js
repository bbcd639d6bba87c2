// Nobody approves what they have not read: a long text counts as read when its end was on the screen, once.

const read = new Set();
let watched = new Map();
let eye = null;

// Each text that must be read, by what it is called; told whenever one of them was.
export function armReading(article, told) {
  eye?.disconnect();
  watched = new Map([...article.querySelectorAll("[data-must-read=yes]")].map((box) => [box.querySelector(".end"), box]));
  eye = new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting).forEach((entry) => seen(article, entry.target));
    told();
  });
  watched.forEach((box, end) => eye.observe(end));
  showUnread(article);
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

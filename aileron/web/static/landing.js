// A link of another site led here: the page asks for its place once more, now by itself. Once, whatever comes of it.

const NAME = "aileron-landed";
const place = location.pathname + location.search;

if (sessionStorage.getItem(NAME) === place) {
  document.getElementById("stuck").hidden = false;
} else {
  sessionStorage.setItem(NAME, place);
  location.replace(place);
}

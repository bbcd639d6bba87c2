// Loads the page again after a navigation from another site, so that the request comes from this site. At most once.

const NAME = "aileron-landed";
const place = location.pathname + location.search;

if (sessionStorage.getItem(NAME) === place) {
  document.getElementById("stuck").hidden = false;
} else {
  sessionStorage.setItem(NAME, place);
  location.replace(place);
}

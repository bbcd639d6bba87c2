// What the form says shall be allowed from now on, as the decision sends it.

const HOUR_MS = 3600 * 1000;

export function grantOf(form) {
  const predicates = [...form.querySelectorAll("select[data-argument]")]
    .filter((each) => each.value)
    .map((each) => JSON.parse(each.value));
  const hours = Number(form.querySelector("#lasting").value);
  return {
    predicates,
    uses: Number(form.querySelector("#uses").value),
    not_after: new Date(Date.now() + hours * HOUR_MS).toISOString(),
    session: form.querySelector("#whose").value === "session",
  };
}

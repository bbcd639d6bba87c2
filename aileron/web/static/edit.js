// The form of a request's arguments. An unchanged field is sent with exactly the requested value.

// Add the handlers of the form. Typing in a field clears its "omit" checkbox.
export function armEdit(article) {
  const form = article.querySelector("#edit");
  for (const field of form?.querySelectorAll("[data-edits]") ?? []) {
    const box = without(form, field);
    field.addEventListener("input", () => { if (box) box.checked = false; });
  }
  form?.querySelector("#discard")?.addEventListener("click", () => {
    discard(form);
    form.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

// Return whether the form differs from the requested arguments.
export function isEdited(form) {
  return [...form?.querySelectorAll("[data-edits]") ?? []].some((field) => {
    const box = without(form, field);
    return box?.checked ? !box.defaultChecked : Boolean(box?.defaultChecked) || isTouched(field);
  });
}

// Reset every field to the requested value.
export function discard(form) {
  for (const field of form.querySelectorAll("[data-edits]")) {
    if (field.dataset.as === "flag") field.checked = field.defaultChecked;
    else if (field.dataset.as === "choice") field.selectedIndex = Math.max(0, [...field.options].findIndex((each) => each.defaultSelected));
    else field.value = field.defaultValue;
    const box = without(form, field);
    if (box) box.checked = box.defaultChecked;
  }
}

// Return the arguments in the form. Throw an error that names the field if one is invalid.
export function edited(form) {
  const fields = [...form.querySelectorAll("[data-edits]")].filter((field) => !without(form, field)?.checked);
  return Object.fromEntries(fields.map((field) => [field.dataset.edits, valueOf(field)]));
}

function without(form, field) {
  return form.querySelector(`#${CSS.escape(field.id.replace("edit", "without"))}`);
}

function isTouched(field) {
  if (field.dataset.as === "flag") return field.checked !== field.defaultChecked;
  if (field.dataset.as === "choice") return field.selectedIndex !== Math.max(0, [...field.options].findIndex((each) => each.defaultSelected));
  return field.value !== field.defaultValue;
}

function valueOf(field) {
  const { as, given, edits } = field.dataset;
  if (given && !isTouched(field)) return JSON.parse(given);
  if (as === "flag") return field.checked;
  if (as === "text") return field.value;
  if (as === "number" && !field.validity.badInput && field.value !== "") return field.valueAsNumber;
  try {
    return JSON.parse(field.value);
  } catch (error) {
    const wanted = as === "number" ? "a valid number" : "valid JSON";
    throw new Error(`${edits} is not ${wanted}. Nothing was changed. Correct it, or reload the page.`);
  }
}

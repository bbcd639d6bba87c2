// Texts of the editor that are not saved, by the path of their page.

export const drafts = new Map();

// Return the unsaved texts of all files.
export function unsaved() {
  return [...drafts.values()].filter((draft) => draft.text !== draft.saved).map((draft) => draft.text);
}

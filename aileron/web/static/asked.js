// What the page of files to trust asks about, so that no file is replaced unseen.

export const ASKED = "button[data-digest]";

// Return whether the new page may replace the shown one, because it asks about no file that the reader has not seen.
// After the person's own decision it may ask about fewer files, or about the file whose trust was revoked; otherwise it
// must ask about the same files.
export function isRead(before, now) {
  const was = asked(before);
  const is = asked(now);
  const own = before.dataset.own;
  const alike = (one, other) => ["kind", "name", "digest"].every((part) => one[part] === other[part]);
  const fresh = is.filter((one) => !was.some((other) => alike(one, other)) && own !== `${one.kind} ${one.name}`);
  return !was.length || (!fresh.length && (own !== undefined || is.length === was.length));
}

export function asked(root) {
  const buttons = [...root.querySelectorAll(ASKED)];
  return buttons.map(({ dataset: { kind, name, digest } }) => ({ kind, name, digest }));
}

"""The operator's trust in files, for a runner for tests. The files are simulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define, field

from aileron.base.json import digest_of_bytes
from aileron.model.audit import Actor
from aileron.model.errors import Conflict, NotFound
from aileron.model.trust import Candidate, Trusted, TrustItem, TrustKind, TrustState

from ._scripted_limits import ScriptedLimits


@define
class ScriptedTrust(ScriptedLimits):
    """Simulated files and the operator's trust in them, in memory. Mix into a runner for tests."""

    _on_disk: dict[tuple[TrustKind, str], Candidate] = field(factory=dict, init=False)
    _trusted: dict[tuple[TrustKind, str], Trusted] = field(factory=dict, init=False)
    _texts: dict[str, str] = field(factory=dict, init=False)

    def put_file(self, kind: TrustKind, name: str, text: str, **about: Any) -> Candidate:
        """Write a file to the simulated disk, replacing an earlier one of its name, and return the file."""
        candidate = Candidate(kind, name, digest_of_bytes(text.encode()), f"/home/{kind.value}s/{name}", text, **about)
        self._on_disk[kind, name] = candidate
        self._texts[candidate.digest] = text
        return candidate

    def remove(self, kind: TrustKind, name: str) -> None:
        """Remove a file from the simulated disk."""
        del self._on_disk[kind, name]

    async def trust_items(self) -> tuple[TrustItem, ...]:
        """Return the files on the simulated disk and the trusted ones."""
        return tuple(self._item(key) for key in sorted({*self._on_disk, *self._trusted}))

    async def trust(self, items: Sequence[tuple[TrustKind, str, str]], actor: Actor) -> tuple[TrustItem, ...]:
        """Trust files on the simulated disk, and return them.

        :raises NotFound: if there is no such file.
        :raises Conflict: if a file has another digest than the one given.
        """
        if any((kind, name) not in self._on_disk for kind, name, _ in items):
            raise NotFound("There is no such file.")
        moved = [self._on_disk[kind, name] for kind, name, seen in items if self._on_disk[kind, name].digest != seen]
        if moved:
            present = [{"kind": each.kind.value, "name": each.name, "digest": each.digest} for each in moved]
            raise Conflict("The file changed since it was shown.", {"items": present})
        for kind, name, seen in items:
            self._trusted[kind, name] = Trusted(kind, name, seen, self._now(), actor.id)
        return tuple(self._item((kind, name)) for kind, name, _ in items)

    async def distrust(self, kind: TrustKind, name: str, actor: Actor) -> None:
        """Remove the trust in a simulated file.

        :raises NotFound: if the file is not trusted.
        """
        if self._trusted.pop((kind, name), None) is None:
            raise NotFound("This is not trusted.")

    def _item(self, key: tuple[TrustKind, str]) -> TrustItem:
        on_disk, trusted = self._on_disk.get(key), self._trusted.get(key)
        if on_disk is None or trusted is None:
            state = TrustState.GONE if on_disk is None else TrustState.NEW
        else:
            state = TrustState.TRUSTED if on_disk.digest == trusted.digest else TrustState.CHANGED
        before = self._texts[trusted.digest] if trusted is not None and state is TrustState.CHANGED else None
        return TrustItem(state, *key, on_disk, trusted, before)

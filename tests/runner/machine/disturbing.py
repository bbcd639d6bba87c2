"""What files, intruders, disks, clocks, keys and the ends of lives do."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from aileron.model.vault import VaultState

from .acting import NUMBER, Acting
from .calling import ACTION
from .home import FILES, FORGED


class Disturbing(Acting):
    """Whatever else comes between."""

    @precondition(lambda self: "files" in self.troubles)
    @rule(name=ACTION, which=NUMBER, read=st.sampled_from((True, True, False)))
    def edit(self, name: str, which: int, read: bool) -> None:
        """A file changes, and the operator reads and trusts it, or does not."""
        texts = FILES[name]
        text = texts[which % len(texts)] if which > 2 else texts[0]
        self.home.put(name, text if read or text is None else f"{text}{which}", trusted=read)

    @precondition(lambda self: "files" in self.troubles)
    @rule(version=st.integers(1, 2), read=st.sampled_from((True, True, False)))
    def rewrite(self, version: int, read: bool) -> None:
        """The connector's file changes, likewise."""
        self.home.rewrite_connector(version, read)

    @precondition(lambda self: "ends" in self.troubles)
    @rule(what=st.sampled_from(("look", "refuse", "relent", "relent", "fill", "kill")), locked=st.integers(0, 5))
    def disturb(self, what: str, locked: int) -> None:
        """The daemon looks at the files, a disk is full, or has room, the daemon dies."""
        if what == "look":
            self.home.runner.check_changes()
        elif what == "refuse":
            self.home.refuse()
        elif what == "relent":
            self.home.relent()
        elif what == "fill":
            self.home.control.full = True
        else:
            self.home.kill(VaultState.LOCKED if locked == 0 else VaultState.UNLOCKED)

    @precondition(lambda self: "keys" in self.troubles)
    @rule(which=st.integers(0, 12))
    def secure(self, which: int) -> None:
        """The passphrase is changed, or the vault locked, which it then is for the rest of this life."""
        if which == 0:
            self.home.later(self.home.runner.limits.hold())
            self.home.vault.lock()
        elif which < 4:
            self.home.control.change_key(bytes([which]) * 32)

    @precondition(lambda self: "intruders" in self.troubles and self.runs and self.home.other is None)
    @rule(how=st.sampled_from(sorted(FORGED)), which=NUMBER, other=NUMBER, settled=st.booleans())
    def forge(self, how: str, which: int, other: int, settled: bool) -> None:
        """Another program writes into the database: best into what was settled."""
        known = [run_id for run_id in self.runs if self.last[run_id].state.settled is settled] or self.runs
        run_id = known[which % len(known)]
        self.home.forge(how, run_id, self.runs[other % len(self.runs)])
        self.forged.add(run_id)
        self.last.pop(run_id, None)

    @rule(seconds=st.sampled_from((1.0, 5.0, 31.0, 70.0, 3600.0, 90_000.0)))
    def pass_time(self, seconds: float) -> None:
        """Time passes."""
        self.home.clock.pump([1.0] * int(min(seconds, 5.0)))
        self.home.clock.advance(seconds - min(seconds, 5.0))

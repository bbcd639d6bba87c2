"""6. Everything is on record."""

from __future__ import annotations

from .guard import Guard

_GATE = "runner/gate.py"

GUARDS = (
    Guard(
        6,
        "an event is kept with its change",
        "store/_runs.py",
        "[event for transition in transitions for event in transition.events]",
        "[]",
        "RecordedTests",
    ),
    Guard(
        6,
        "a hash is over the one before",
        "audit/_chain.py",
        " or before != self.head:",
        ":",
        "ChainTests.test_link_altered",
    ),
    Guard(
        6,
        "a record's place is its number",
        "audit/_chain.py",
        "row[0] != self.last + 1 or ",
        "",
        "ChainTests.test_begun_later",
    ),
    Guard(
        6,
        "a record's hash is its own",
        "audit/_chain.py",
        "bool(seal_row(self.head, row) == own)",
        "True",
        "ChainTests.test_altered",
    ),
    Guard(
        6,
        "a payload is what was recorded",
        "audit/_chain.py",
        "payload_digest(salt, payload) != digest",
        "False",
        "ChainTests.test_altered",
    ),
    Guard(
        6,
        "the record reaches what the vault sealed",
        "runner/_recovery.py",
        "return sealed is None or await self._runs.audit.at(sealed[0]) == sealed[1]",
        "return True",
        "PutBackTests.test_found",
    ),
    Guard(
        6,
        "an old record's approvals are asked anew",
        "runner/_recovery.py",
        "            if run.gated and run.state in NOT_BEGUN:\n",
        "            if False:\n",
        "PutBackTests.test_waiting",
    ),
    Guard(
        6,
        "the record names who decided",
        _GATE,
        "        actor = get_decider(decision)\n",
        '        actor = Actor("service", "daemon")\n',
        "RecordedTests.test_life",
    ),
)

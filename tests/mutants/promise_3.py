"""3. What was approved is what runs."""

from __future__ import annotations

from .guard import Guard

_DECISIONS = "runner/decisions.py"
_GATE = "runner/gate.py"
_PLAN = "runner/plan.py"

GUARDS = (
    Guard(
        3,
        "a decision names what is shown",
        _GATE,
        "        if digest not in (None, approval.digest):\n",
        "        if False:\n",
        "ReviewedTests",
        (
            (
                "runner/requests.py",
                "        if approval is None or approval.digest != shown:\n",
                "        if False:\n",
            ),
        ),
    ),
    Guard(
        3,
        "the digest binds the action's file",
        _PLAN,
        '                "manifest": self.action.digest,\n',
        "",
        "ChangesTests.test_asked_anew",
    ),
    Guard(
        3,
        "the digest binds the arguments and the requests",
        _PLAN,
        '                "arguments": self.arguments,\n'
        '                "steps": [planned.pinned() for planned in self.steps],\n',
        "",
        "StillTests.test_arguments",
    ),
    Guard(
        3,
        "the digest binds the connector's content",
        _PLAN,
        "            content_hash=self.description.content_hash,\n",
        '            content_hash="",\n',
        "ChangesTests.test_asked_anew",
    ),
    Guard(
        3,
        "the digest binds the credential",
        _PLAN,
        "            binding=None if self.binding is None else ReviewedBinding.of(self.binding),\n",
        "            binding=None,\n",
        "ChangesTests.test_asked_anew",
    ),
    Guard(
        3,
        "the digest binds the place and the request",
        _PLAN,
        "            base_url=self.base_url,\n"
        "            binding=None if self.binding is None else ReviewedBinding.of(self.binding),\n"
        "            request=None if self.request is None else ReviewedRequest.of(self.request),\n",
        '            base_url="",\n'
        "            binding=None if self.binding is None else ReviewedBinding.of(self.binding),\n"
        "            request=None,\n",
        "ReviewedTests",
    ),
    Guard(
        3,
        "the digest is built anew before the effect",
        _GATE,
        "        if plan.digest(approval.run) != approval.digest:\n",
        "        if False:\n",
        "StillTests",
    ),
    Guard(
        3,
        "a mark binds the digest",
        _DECISIONS,
        '        "digest": decided.digest,\n',
        "",
        "StillTests.test_digest_and_action",
    ),
    Guard(
        3,
        "a mark binds its end",
        _DECISIONS,
        '        "not_after": _moment(decided.not_after),\n',
        "",
        "StillTests.test_mark_binds",
    ),
    Guard(
        3,
        "a mark binds who took it",
        _DECISIONS,
        '        "decided_by": decided.decided_by,\n',
        "",
        "StillTests.test_mark_binds",
    ),
    Guard(
        3,
        "a mark binds when it begins",
        _DECISIONS,
        '        "not_before": _moment(decided.not_before),\n',
        "",
        "StillTests.test_mark_binds",
    ),
    Guard(
        3,
        "a decision has an end",
        _DECISIONS,
        "    if now > approval.not_after:\n",
        "    if False:\n",
        "StillTests.test_too_old",
    ),
    Guard(
        3,
        "a decision that was used is none",
        _DECISIONS,
        "        if approval.mark is not None and self._control.spent(approval.mark):\n",
        "        if False:\n",
        "StillTests.test_once_unrecorded",
    ),
    Guard(
        3,
        "a decision is used before anything leaves",
        _DECISIONS,
        "        self._control.spend(approval.mark, approval.not_after, *head)\n",
        "        self._control.seal(*head)\n",
        "StillTests.test_once_while_it_begins",
    ),
    Guard(
        3,
        "a decision under an earlier key is none",
        _DECISIONS,
        "    if verdict is Mark.EARLIER:\n",
        "    if False:\n",
        "StillTests.test_key",
    ),
    Guard(
        3,
        "what is decided is what the row shows at that moment",
        "runner/requests.py",
        "        if approval is None or approval.digest != shown:\n",
        "        if False:\n",
        "StillTests.test_changed_while_deciding",
    ),
)

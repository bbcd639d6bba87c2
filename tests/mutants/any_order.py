"""Guards that the machine, which does everything in any order, must miss: it looks for faults that nobody thought of.

Its games are chance's.  Each of these was noticed within some hundred of them.
"""

from __future__ import annotations

from .guard import ANY_ORDER, Guard

_CHECK = "runner/grant_check.py"
_GRANTING = "runner/grants.py"
_BOOK = "vault/_grants.py"
_DECISIONS = "runner/decisions.py"
_UNDO = "runner/decisions.py"
_PAUSING = "runner/pauses.py"
_RUNS = "runner/runs.py"
_TEST = "MachineTests"
_LOOKED_AT_BEFORE = """\
        await self._limits.caps.refuse_full(plan, arguments, run.session_id)
        return await self._do(run, plan, call.actor)
"""
_ANY_END = """\
        (_R.UNKNOWN, _R.COMPLETED),
        (_R.COMPLETED, _R.FAILED),
        (_R.FAILED, _R.COMPLETED),
"""

GUARDS = (
    Guard(ANY_ORDER, "a grant's use is counted", _BOOK, "used=grant.used + 1, ", "", _TEST),
    Guard(
        ANY_ORDER,
        "a grant is used no more often than it may be",
        "values/_grants.py",
        "return GrantState.LIVE if self.left else GrantState.USED_UP",
        "return GrantState.LIVE",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "a grant that was revoked allows nothing",
        "values/_grants.py",
        "        if self.revoked_at is not None:\n",
        "        if False:\n",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "a grant that was revoked lets nothing begin that it had allowed",
        _CHECK,
        "        if state in (GrantState.REVOKED, GrantState.OVER):\n",
        "        if False:\n",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "a grant allows what its predicates say",
        "runner/predicates.py",
        "    return same(grant.exact, rest) and all(",
        "    return True or all(",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "a grant of one session is no other's",
        _GRANTING,
        " and grant.session_id in (None, run.session_id)",
        "",
        _TEST,
        ((_CHECK, " or grant.session_id not in (None, approval.run.session_id)", ""),),
    ),
    Guard(
        ANY_ORDER,
        "a grant is suspended where something changed",
        "runner/grant_check.py",
        "    if not changed:\n",
        "    if True:\n",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "limits are looked at in the transaction that begins a run",
        "store/_details_tables.py",
        "    check_room(cursor, charges, at)\n",
        "",
        _TEST,
        (
            (
                "runner/_submission.py",
                "        return await self._do(run, plan, call.actor)\n",
                _LOOKED_AT_BEFORE,
            ),
        ),
    ),
    Guard(
        ANY_ORDER,
        "the undo window is waited for",
        _DECISIONS,
        "    begins = max(now + undo, decision.not_before or now)\n",
        "    begins = decision.not_before or now\n",
        _TEST,
        ((_UNDO, "        if seconds > 0:\n", "        if False:\n"),),
    ),
    Guard(
        ANY_ORDER,
        "what was put off waits",
        _DECISIONS,
        "    begins = max(now + undo, decision.not_before or now)\n",
        "    begins = now + undo\n",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "nothing begins that is paused",
        _PAUSING,
        "        return standing.get(None) or standing.get(session_id)\n",
        "        return None\n",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "what was approved before a pause is asked anew",
        "runner/_scheduler.py",
        "            if not run.gated or self._stays_paused(run, session_id):\n",
        "            if True:\n",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "what was denied is not asked again",
        "runner/denials.py",
        "            if each.request == asked:\n",
        "            if each.request is asked:\n",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "what was denied in an earlier life is not asked again",
        "runner/denials.py",
        "            if approval.run.id not in forgiven:\n",
        "            if False:\n",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "a late answer changes nothing that a person has settled",
        _RUNS,
        "        while present.state is RunState.UNKNOWN:\n",
        "        while present.state in (RunState.UNKNOWN, RunState.COMPLETED, RunState.FAILED):\n",
        _TEST,
        (
            (
                _RUNS,
                "        (_R.UNKNOWN, _R.COMPLETED),\n",
                _ANY_END,
            ),
        ),
    ),
    Guard(
        ANY_ORDER,
        "a late refusal says nothing of the attempts before",
        "runner/outcomes.py",
        " if late.alone or read is Meaning.DONE else None",
        "",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "what is not there may be on its way",
        "runner/reconciler.py",
        "        if finding.happened is False and on_its_way:",
        "        if False:",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "what is done again is asked about",
        "runner/_build.py",
        "put_up=proposals.put_up",
        "put_up=self._build_submission(proposals)._do",
        _TEST,
        (("runner/reconciler.py", "            gated=True,\n", "            gated=False,\n"),),
    ),
    Guard(
        ANY_ORDER,
        "what is known to have happened is not done again",
        "runner/gate.py",
        "        if run.parent_id is not None:\n",
        "        if False:\n",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "what nobody answered is in doubt",
        "runner/outcomes.py",
        "    return Meaning.IN_DOUBT\n",
        "    return Meaning.NOT_DONE\n",
        _TEST,
    ),
    Guard(
        ANY_ORDER,
        "what was taken back does not begin",
        "runner/_submission.py",
        '            await self._decisions.give_up(run)\n        event = self._runs.events.of_run("run.cancelled"',
        '            return run\n        event = self._runs.events.of_run("run.cancelled"',
        _TEST,
    ),
)

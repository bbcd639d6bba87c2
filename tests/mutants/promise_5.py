"""5. Nothing runs twice, and nothing is called failed that may have happened."""

from __future__ import annotations

from .guard import Guard

_PLAN = "runner/plan.py"
_EXECUTOR = "runner/_executor.py"

GUARDS = (
    Guard(
        5,
        "a write that was sent and not classified is in doubt",
        "runner/outcomes.py",
        "    return Meaning.IN_DOUBT\n",
        "    return Meaning.NOT_DONE\n",
        "DoubtTests.test_no_answer",
    ),
    Guard(
        5,
        "what is in doubt ends as unknown",
        _EXECUTOR,
        "        if not execution.in_doubt:\n",
        "        if True:\n",
        "DoubtTests.test_stopped",
    ),
    Guard(
        5,
        "doubt stays until an attempt is done",
        _EXECUTOR,
        "execution.in_doubt = read is Meaning.IN_DOUBT or (execution.in_doubt and read is not Meaning.DONE)",
        "execution.in_doubt = read is Meaning.IN_DOUBT",
        "DoubtTests.test_doubt_stays",
    ),
    Guard(
        5,
        "what was sent is not sent again unless it may be",
        "runner/outcomes.py",
        "        if outcome.sent and not idempotent:\n            return None\n",
        "",
        "DoubtTests.test_no_answer",
    ),
    Guard(
        5,
        "an action may forbid to repeat a step",
        _PLAN,
        " and self.step.idempotent is not False",
        "",
        "OnceTests.test_narrowed",
    ),
    Guard(
        5,
        "all attempts share one effect key",
        _PLAN,
        '    return f"{effect_key}.{step.id}"\n',
        '    return f"{effect_key}.{id(object())}"\n',
        "OnceTests.test_idempotent",
    ),
    Guard(
        5,
        "attempts come to an end",
        "runner/outcomes.py",
        " or attempts > MAX_RETRIES",
        "",
        "OnceTests.test_attempts_end",
    ),
    Guard(
        5,
        "a connector that breaks its contract leaves doubt",
        _EXECUTOR,
        "            return _BROKEN\n\n    async def _send(",
        "            return Outcome(fault=_BROKEN.fault, sent=False)\n\n    async def _send(",
        "DoubtTests.test_broken_connector",
    ),
    Guard(
        5,
        "an effect that is stopped leaves doubt",
        _EXECUTOR,
        "            return evolve(_STOPPED, notes=notes_of(stopped))\n",
        "            return Outcome(fault=_STOPPED.fault, sent=False)\n",
        "DoubtTests.test_stopped",
    ),
    Guard(
        5,
        "what a crash left is in doubt, not failed",
        "runner/_recovery.py",
        "await self._runs.apply(transition(run, RunState.UNKNOWN, now, event, fault=fault, attempts=attempts))",
        "await self._runs.apply(transition(run, RunState.FAILED, now, event, fault=fault, attempts=attempts))",
        "DoubtTests.test_killed",
    ),
    Guard(
        5,
        "the decision for what is in doubt counts no more",
        "runner/_recovery.py",
        "        await self._decisions.give_up(run)\n        done =",
        "        done =",
        "DoubtTests.test_settled_and_put_back",
    ),
    Guard(
        5,
        "only what is in doubt is settled",
        "runner/reconciler.py",
        "            raise make_conflict(run)\n        await self._decisions.give_up(run)\n",
        "            pass\n        await self._decisions.give_up(run)\n",
        "DoubtTests",
    ),
    Guard(
        5,
        "a step that failed ends the run",
        _EXECUTOR,
        "            if outcome.fault is not None:\n                return await self._stop",
        "            if False:\n                return await self._stop",
        "OnceTests.test_steps",
    ),
    Guard(
        5,
        "a change is made from the state that was seen",
        "store/_runs.py",
        "    if run.state is not transition.start:\n        raise StateConflict(run)\n",
        "",
        "OnceTests.test_taken_back_while_it_begins",
    ),
    Guard(
        5,
        "what is under way cannot be taken back",
        "runner/_submission.py",
        "        if run.state not in (RunState.PENDING, *NOT_BEGUN):\n",
        "        if False:\n",
        "OnceTests.test_under_way",
    ),
)

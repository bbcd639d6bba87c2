"""4. Nothing is lost."""

from __future__ import annotations

from .guard import Guard

GUARDS = (
    Guard(
        4,
        "an approved run is taken up at a start",
        "runner/_recovery.py",
        "            self._scheduler.start(run)  # approved, or waiting for the vault or a credential\n",
        "            pass\n",
        "KeptTests.test_decided",
    ),
    Guard(
        4,
        "a decision begins the run",
        "runner/_decisions.py",
        "            self._scheduler.start(approval.run)\n",
        "            pass\n",
        "KeptTests.test_late_decision",
    ),
    Guard(
        4,
        "a decision outlives whoever took it",
        "runner/scheduling.py",
        "        told: Deferred[T] = Deferred()\n        self._running[told] = task = Deferred.fromCoroutine(work)\n",
        "        return Deferred.fromCoroutine(work)\n"
        "        told: Deferred[T] = Deferred()\n"
        "        self._running[told] = task = told\n",
        "KeptTests.test_caller_leaves",
    ),
    Guard(
        4,
        "what met a locked vault waits for it",
        "runner/_scheduler.py",
        "        if not unlocked:\n            await self._wait(",
        "        if False:\n            await self._wait(",
        "KeptTests.test_waits_for_the_vault",
    ),
    Guard(
        4,
        "an end is written however long the database refuses",
        "runner/runs.py",
        "            except StoreUnavailable:\n"
        '                _log.warn("what became of run {run} cannot be written yet", run=run_id)\n',
        "            except ZeroDivisionError:\n"
        '                _log.warn("what became of run {run} cannot be written yet", run=run_id)\n',
        "KeptTests.test_end_is_written",
    ),
    Guard(
        4,
        "a key stands for one run",
        "runner/_submission.py",
        "            if known is not None:\n                return known\n",
        "            if known is not None and False:\n                return known\n",
        "KeptTests.test_key",
        (("store/_runs.py", "    if earlier is not None:\n        return earlier, False\n", ""),),
    ),
    Guard(
        4,
        "a key stands for one run, in the transaction",
        "store/_runs.py",
        "    if earlier is not None:\n        return earlier, False\n",
        "",
        "KeptTests.test_key_twice_at_once",
    ),
    Guard(
        4,
        "a key stands for the same arguments",
        "runner/_submission.py",
        "run.manifest_digest != action.digest or canonical(run.asked_for) != canonical(arguments)",
        "run.manifest_digest != action.digest",
        "KeptTests.test_key",
    ),
    Guard(
        4,
        "who waits is told",
        "runner/runs.py",
        "            self._waiters.tell(run.id, run)\n",
        "            pass\n",
        "KeptTests.test_waiter",
    ),
    Guard(
        4,
        "one at a time acts on a run",
        "runner/scheduling.py",
        "            return await lock.run(work)\n",
        "            return await work()\n",
        "KeptTests.test_confirmed_against_denied",
    ),
)

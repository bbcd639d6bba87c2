"""What is remembered beside the runs lasts, and is believed no further than it holds."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred

from aileron.base.json import digest_of_bytes
from aileron.model.authority import PendingLimits
from aileron.model.errors import StoreUnavailable
from aileron.model.queries import AuditQuery
from aileron.model.runs import Progress, RunState
from aileron.model.vault import BindingFlag
from aileron.testing import example_event, example_run, example_transition
from aileron.testing._examples import NOON

from .case import DatabaseCase

FLAG = BindingFlag("api_key/slack/me", 1, NOON, "An answer held it.")


class MemoriesTests(DatabaseCase):
    """Texts, watermarks and flags over SQLite."""

    def setUp(self) -> None:
        """A store in a temporary file."""
        super().setUp()
        self.store = self.opened()

    def test_texts(self) -> None:
        """A text is found by its digest in another life too; twice is safe; unknown or altered ones are None."""
        text = "été\r\n+++\n"
        digest = self.do(self.store.contents.put(text))
        self.assertEqual((digest, self.do(self.store.contents.put(text))), (digest_of_bytes(text.encode()), digest))
        self.store = self.opened()
        self.assertEqual(self.do(self.store.contents.get(digest)), text)
        self.assertIsNone(self.do(self.store.contents.get("sha256:00")))
        self.query("UPDATE trusted_texts SET text = 'bad'")
        self.assertIsNone(self.do(self.store.contents.get(digest)))
        self.do(self.store.contents.put(text))
        self.assertEqual(self.do(self.store.contents.get(digest)), text)

    def test_swap(self) -> None:
        """A watermark is written only over the value that was read, or where there is none."""
        swap = self.store.watermarks.swap
        results = [
            self.do(swap("a", *values)) for values in (("0", "1"), (None, "1"), (None, "2"), ("0", "2"), ("1", "3"))
        ]
        self.assertEqual(results, [False, True, False, False, True])
        self.assertEqual(self.do(self.store.watermarks.all()), {"a": "3"})

    def test_watermarks(self) -> None:
        """The newest value of each name is there in another life too; who stops waiting for a write undoes none."""
        for name, value in (("a", "1"), ("b", "2"), ("a", "3")):
            self.do(self.store.watermarks.put(name, value))
        self.threads.hold()
        putting = Deferred.fromCoroutine(self.store.watermarks.put("c", "4"))
        putting.cancel()
        self.failureResultOf(putting, CancelledError)
        self.threads.release()
        self.assertEqual(self.do(self.opened().watermarks.all()), {"a": "3", "b": "2", "c": "4"})

    def test_flags(self) -> None:
        """A flag comes with what a run did; the first of a revision stays, another revision takes its place."""
        run = example_run(gated=False)
        begun = example_transition(run, RunState.EXECUTING)
        run, _ = self.do(self.store.runs.receive(run, [begun], PendingLimits()))
        self.do(self.store.runs.progress(Progress(run.id, (), flags=(FLAG,))))
        self.assertEqual(self.do(self.store.flags.all()), {FLAG.binding: FLAG})
        later = evolve(FLAG, since=NOON + timedelta(hours=1))
        self.do(self.store.runs.progress(Progress(run.id, (), flags=(later,))))
        self.assertEqual(self.do(self.store.flags.all()), {FLAG.binding: FLAG})
        rebound = evolve(later, revision=2)
        self.do(self.store.runs.apply(example_transition(run, RunState.COMPLETED, flags=(rebound,))))
        self.assertEqual(self.do(self.store.flags.all()), {FLAG.binding: rebound})

    def test_flag_without_a_run(self) -> None:
        """A flag may be raised alone, with its events or not at all; the first of a revision stays."""
        event = example_event("secret.echoed")
        self.do(self.store.flags.put(FLAG, [event]))
        later = evolve(FLAG, binding="api_key/other/me")
        self.refused(self.store.flags.put(later, [event]), StoreUnavailable)
        self.do(self.store.flags.put(evolve(FLAG, since=NOON + timedelta(hours=1)), []))
        self.assertEqual(self.do(self.store.flags.all()), {FLAG.binding: FLAG})
        (record,) = self.do(self.store.audit.list(AuditQuery())).items
        self.assertEqual(record.event, event)

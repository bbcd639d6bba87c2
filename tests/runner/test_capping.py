"""No more runs begin than a limit allows, whoever asks and however fast."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from aileron.base.json import JSON, utc
from aileron.model.actions import Cap
from aileron.model.authority import LoopLimits, OwnCap
from aileron.model.errors import LimitExceeded, NotFound, StoreUnavailable
from aileron.model.runs import RunState
from aileron.runner.caps import MOST_VALUES, _values, _write_counted

from .kit import OPERATOR, START, manifest, step
from .test_decisions import DecidedCase

HOUR, DAY = 3600.0, 86_400.0
USUAL = LoopLimits().writes_an_hour or 0


class CappedCase(DecidedCase):
    """Actions with limits."""

    def limit(self, name: str, limits: str, *, gated: bool = False, operation: str = "post") -> None:
        """Write an action with C{[limits]}."""
        text = manifest(name, step(operation), gated=gated)
        self.write(name, text.replace("[[execute]]", f"[limits]\n{limits}\n\n[[execute]]"))
        self.runner.check_changes()

    def cap(self, cap: Cap, action: str | None = None) -> None:
        """Let the operator set a cap."""
        self.sync(self.runner.limits.set_caps([OwnCap(cap, utc(0), "", action)], OPERATOR))

    def full(self, *args: str | None, **kwargs: str | None) -> LimitExceeded:
        """A call that is refused for a limit."""
        error = self.fails(self.runner.submission.submit(self.call(*args, **kwargs)), LimitExceeded)  # type: ignore[arg-type]
        assert isinstance(error, LimitExceeded)
        return error


class ManifestTests(CappedCase):
    """Limits of the manifest."""

    def test_hour(self) -> None:
        """The run after the last that the hour allows is refused, is not kept, and told when there is room.

        A limit that is written counts reads too; another action has room.
        """
        for operation in ("post", "look"):
            self.setUp()
            self.limit("few", "per_hour = 2", operation=operation)
            self.submit("few")
            self.clock.advance(600)
            self.submit("few", session="session-2")
            refused = self.full("few")
            self.assertEqual(refused.details, {"retry_after": 3000})
            self.assertEqual(refused.message, "The limit for few is reached: 2 times an hour.")
            self.assertEqual(self.sql("SELECT count(*) FROM runs"), [(2,)])
            self.submit("open")
            self.clock.advance(3000)
            self.submit("few")
            self.full("few")

    def test_windows(self) -> None:
        """An hour and a day are counted over the same runs."""
        self.limit("few", "per_hour = 2\nper_day = 3")
        for _ in range(2):
            self.submit("few")
        self.full("few")
        self.clock.advance(HOUR)
        self.submit("few")
        self.assertEqual(self.full("few").details, {"retry_after": DAY - HOUR})

    def test_session(self) -> None:
        """A limit of a session counts each apart."""
        self.limit("few", "per_session_per_hour = 1\nper_session_per_day = 1")
        self.submit("few")
        self.full("few")
        self.submit("few", session="session-2")
        self.submit("few", session=None)

    def test_argument(self) -> None:
        """A limit of an argument counts each value apart, whatever its case and the blanks around; none is stored."""
        self.limit("few", "[limits.per_argument.text]\nper_hour = 1")
        self.submit("few", {"text": "Anna@example.com"})
        self.full("few", {"text": " anna@EXAMPLE.com "})  # type: ignore[arg-type]
        self.submit("few", {"text": "bela@example.com"})
        keys = " ".join(str(key) for (key,) in self.sql("SELECT key FROM charges"))
        self.assertNotIn("example.com", keys.lower())


class UsualTests(CappedCase):
    """The limit that nobody has to write."""

    def loop(self, name: str, times: int) -> None:
        """Call an action often, with other arguments each time."""
        for number in range(times):
            self.submit(name, {"text": f"{number}"})

    def test_loop(self) -> None:
        """An agent in a loop is stopped at an ungated write; another session and the operator are not."""
        self.loop("open", USUAL)
        self.full("open")
        self.submit("open", session="session-2")
        self.submit("open", session=None)

    def test_reads(self) -> None:
        """Reads are free."""
        self.offer("reading", step("look"), gated=False)
        self.loop("reading", USUAL + 1)
        self.assertEqual(self.sql("SELECT * FROM charges"), [])

    def test_another_instead(self) -> None:
        """An hourly limit of the manifest's, or the operator's own cap of the action, stands in its place."""
        self.limit("few", "per_session_per_hour = 61")
        self.cap(Cap(61, HOUR, per_session=True), "open")
        for name in ("few", "open"):
            self.loop(name, 61)
            self.full(name)


class OwnTests(CappedCase):
    """The operator's own caps."""

    def test_all(self) -> None:
        """A cap of everything counts all actions together, reads and the operator's own calls as well."""
        self.cap(Cap(2, DAY))
        self.submit("open")
        self.submit("open", session=None)
        self.assertIn("all actions together", self.full("open").message)

    def test_replaced_and_removed(self) -> None:
        """A new number replaces the one before, beside the manifest's; what is removed counts no more.

        Each is on record, and what was set and counted outlives the daemon.
        """
        self.limit("few", "per_hour = 5")
        self.cap(Cap(1, HOUR), "few")
        self.submit("few")
        self.full("few")
        self.cap(Cap(2, HOUR), "few")
        self.next_life()
        self.submit("few")
        self.full("few")
        which = self.runner.limits.caps()[0]
        self.assertEqual((which.cap.most, which.set_by, which.set_at), (2, OPERATOR.id, utc(START)))
        self.sync(self.runner.limits.remove_cap(which, OPERATOR))
        self.submit("few")
        self.fails(self.runner.limits.remove_cap(which, OPERATOR), NotFound)
        found = self.sql("SELECT type FROM audit_events WHERE type LIKE 'cap.%' ORDER BY seq")
        self.assertEqual(found, [("cap.set",), ("cap.set",), ("cap.removed",)])

    def test_full_disk(self) -> None:
        """What could not be kept does not count."""
        self.operator_limits.full = True
        own = OwnCap(Cap(1, HOUR), utc(0), "", "open")
        self.fails(self.runner.limits.set_caps([own], OPERATOR), StoreUnavailable)
        self.assertEqual(self.runner.limits.caps(), ())


class GatedTests(CappedCase):
    """Limits of what is approved."""

    def setUp(self) -> None:
        """A gated action that may run once an hour."""
        super().setUp()
        self.limit("gated", "per_hour = 1", gated=True)

    def test_before_asking(self) -> None:
        """Nobody is asked for what could not begin; what was denied, or waits, is not counted."""
        self.approve(self.submit("gated", {"text": "another"}), approved=False)
        self.assertEqual(self.sql("SELECT * FROM charges"), [])
        self.approve(self.submit())
        self.full()
        self.assertEqual(self.sync(self.runner.decisions.pending(None)), 0)

    def test_asked_anew(self) -> None:
        """An approved run that meets a full limit is asked anew, and says why and until when; then it can begin."""
        one, two = self.submit(), self.submit("gated", {"text": "another"})
        self.approve(one)
        self.clock.advance(60)
        self.approve(two)
        self.assertIs(self.state(two), RunState.PENDING)
        stale = self.shown(two).stale or ""
        self.assertIn("The limit for gated is reached: once an hour. There is room at 2027-01-15T09:00:00", stale)
        self.assertEqual(len(self.connector.sendings), 1)
        self.clock.advance(HOUR)
        self.approve(two)
        self.assertIs(self.state(two), RunState.COMPLETED)


class ValueTests(CappedCase):
    """How values are counted."""

    def test_kinds(self) -> None:
        """A text is no number, however it is written, and true is not 1."""
        counted = {_write_counted(value) for value in ("1", 1, True, None, "true", [1], {"a": 1})}
        self.assertEqual(len(counted), 7)

    def test_arrays(self) -> None:
        """Each element of an array is counted once, nothing where there is nothing; very many values are refused."""
        self.assertEqual(_values("to", ["a", "B", " A "]), ("text a", "text b"))
        self.assertEqual((_values("to", None), _values("to", [])), ((), ()))
        many: JSON = [str(number) for number in range(MOST_VALUES + 1)]
        self.assertRaises(LimitExceeded, _values, "to", many)

    @settings(deadline=None, max_examples=50)
    @given(st.text())
    def test_case(self, text: str) -> None:
        """A text counts as the same with blanks around it."""
        arguments: Mapping[str, JSON] = {"to": f" {text}\t"}
        self.assertEqual(_values("to", arguments["to"]), _values("to", text))


class FormTests(CappedCase):
    """One value in different spellings."""

    def same(self, *texts: str) -> None:
        """Pass if each of these texts meets a full limit."""
        for text in texts:
            self.fails(self.runner.submission.submit(self.call("few", {"text": text})), LimitExceeded)

    def test_address(self) -> None:
        """An address counts as one with a name before it, and with a character in it that cannot be seen."""
        self.limit("few", "[limits.per_argument.text]\nper_hour = 1")
        self.submit("few", {"text": "b@example.org"})
        self.same("Bob <b@example.org>", "B@Example.org", "b\u200b@example.org", '"Bob, B." <b\u00ad@example.org>')
        self.submit("few", {"text": "Bob <bob@example.org>"})

    def test_connector(self) -> None:
        """What the connector says is one value counts as one; where it says that a text lists several, each counts."""
        text = manifest("few", step("post", inputs='to = "${args.text}"'), gated=False)
        self.write("few", text.replace("[[execute]]", "[limits.per_argument.text]\nper_hour = 1\n\n[[execute]]"))
        self.runner.check_changes()
        self.submit("few", {"text": "Ada <a@example.org>; b@example.org"})
        self.same("b@example.org", "c@example.org; a@example.org")
        self.submit("few", {"text": "c@example.org"})


class ForgedTests(CappedCase):
    """Rows that another program deleted."""

    def test_forgets(self) -> None:
        """A cap forgets what was deleted, as the security model says; the record does not."""
        self.limit("few", "per_hour = 1")
        self.submit("few")
        self.sql("DELETE FROM charges")
        self.submit("few")
        self.assertEqual(self.sql("SELECT count(*) FROM audit_events WHERE type = 'execution.started'"), [(2,)])

"""Files are inert until the operator has trusted them as they are."""

from __future__ import annotations

from attrs import evolve
from zope.interface import implementer

from aileron.base.json import digest_of_bytes
from aileron.base.load_error import LoadError
from aileron.model.errors import Conflict, InvalidRequest, NotFound, StoreUnavailable, VaultLocked
from aileron.model.interfaces.connectors import IConfigFile
from aileron.model.runs import Decision, RunState
from aileron.model.trust import Candidate, TrustItem, TrustKind, TrustState
from aileron.model.vault import VaultState
from aileron.testing import ScriptedConnector

from .kit import AGENT, OPERATOR, RunnerCase, manifest, step

_CONNECTOR = "local://test/scripted"
_TEXT = manifest("new", step("post"), gated=False)


def _digest(text: str) -> str:
    return digest_of_bytes(text.encode())


@implementer(IConfigFile)
class ConfigFile:
    """A configuration that lies there."""

    def candidates(self) -> tuple[Candidate, ...]:
        """As written."""
        return (Candidate(TrustKind.CONFIG, "config.yaml", _digest("a: 1\n"), "/home/config.yaml", "a: 1\n"),)

    def problems(self) -> tuple[LoadError, ...]:
        """It is not in force."""
        return (LoadError("untrusted", "it is not trusted", "/home/config.yaml", None, "user"),)


class TrustCase(RunnerCase):
    """Ways to look at what is trusted."""

    def errors(self) -> list[str]:
        """What is reported as untrusted."""
        self.runner.check_changes()
        return [error.message for error in self.runner.submission.offering().load_errors if error.kind == "untrusted"]

    def items(self) -> dict[str, TrustItem]:
        """What the operator is asked about, by name."""
        return {item.name: item for item in self.sync(self.runner.trust.trust_items())}

    def give(self, name: str, text: str, kind: TrustKind = TrustKind.ACTION) -> tuple[TrustItem, ...]:
        """Trust a file as the page would."""
        return self.sync(self.runner.trust.trust([(kind, name, _digest(text))], OPERATOR))

    def words(self, type_: str) -> list[tuple[object, ...]]:
        """What is on record of events of one type, oldest first."""
        events = self.recorded(type_)
        return [(each.actor.id, each.action, each.connector, dict(each.payload)) for each in events]


class OfferedTests(TrustCase):
    """What is offered, and what can run."""

    def test_new(self) -> None:
        """A file that nobody has read is reported, not offered, and does not run; a connector's word is none for it.

        Once it is trusted it is offered at once, whoever waits for that is told, and it runs.
        """
        self.write("new", _TEXT, trusted=False)
        self.believe(TrustKind.CONNECTOR, "new", _digest(_TEXT))
        self.assertEqual(self.errors(), ["is new: read it, then `aileron action trust new`"])
        self.assertNotIn("new", self.runner.submission.offering().offers)
        error = self.fails(self.runner.submission.submit(self.call("new")), NotFound)
        self.assertIn("aileron action trust new", error.message)
        self.assertEqual(self.connector.sendings, [])
        waiting = self.later(self.runner.submission.offering_after(self.runner.submission.offering().generation, 60.0))
        self.give("new", _TEXT)
        self.assertIn("new", self.successResultOf(waiting).offers)
        self.assertIs(self.submit("new").state, RunState.EXECUTING)
        self.assertEqual(len(self.connector.sendings), 1)

    def test_lacking(self) -> None:
        """An action whose connector is missing is refused with what it lacks, and so is all that was named with it."""
        text = _TEXT.replace(_CONNECTOR, "local://test/nowhere")
        self.write("new", text, trusted=False)
        (why,) = self.items()["new"].candidate.lacks  # type: ignore[union-attr]
        self.assertEqual(why, "needs the connector local://test/nowhere, which is not there")
        wanted = [(TrustKind.ACTION, "new", _digest(text))]
        error = self.fails(self.runner.trust.trust(wanted, OPERATOR), InvalidRequest)
        self.assertEqual(error.message, f"The action new cannot run: it {why}. Nothing was trusted.")
        self.assertIs(self.items()["new"].state, TrustState.NEW)

    def test_unasked(self) -> None:
        """An action that writes without an approval is known as such; one that is approved, or only reads, is not."""
        self.write("new", _TEXT, trusted=False)
        self.write("read", manifest("read", step("look"), gated=False), trusted=False)
        found = {name: item.candidate.unasked for name, item in self.items().items() if item.candidate is not None}
        self.assertEqual([found[name] for name in ("new", "read", "gated")], [True, False, False])

    def test_changed(self) -> None:
        """A file that was changed since is withdrawn, and the operator's word of before does not count for it."""
        generation = self.runner.submission.offering().generation
        self.write("open", manifest("open", step("put"), gated=False), trusted=False)
        self.assertEqual(self.errors(), ["was changed since it was trusted: read it, then `aileron action trust open`"])
        self.assertEqual(set(self.runner.submission.offering().offers), {"gated"})
        self.assertGreater(self.runner.submission.offering().generation, generation)
        self.fails(self.runner.submission.submit(self.call("open")), NotFound)

    def test_connector(self) -> None:
        """An action whose connector was not read, or has changed, is not offered; what is shipped needs no word."""
        shipped = evolve(self.connector.description, name="builtin://scripted")
        self.connectors.add(ScriptedConnector(shipped, clock=self.clock))
        self.write("new", _TEXT.replace(_CONNECTOR, "builtin://scripted"))
        self.trust.remove(TrustKind.CONNECTOR, _CONNECTOR)
        why = f"needs the connector {_CONNECTOR}, which is new: read it, then `aileron connector trust {_CONNECTOR}`"
        self.assertEqual(self.errors(), [why, why])
        self.believe(TrustKind.CONNECTOR, _CONNECTOR, "sha256:another")
        self.assertIn("was changed", self.errors()[0])
        self.assertEqual(set(self.runner.submission.offering().offers), {"new"})

    def test_changed_meanwhile(self) -> None:
        """A connector that changes while an idempotency key is looked up does not run, being unread."""
        call = self.call("open", key="once")
        self.pool.hold()
        asked = self.later(self.runner.submission.submit(call))
        self.connector.description = evolve(self.connector.description, content_hash="sha256:unread")
        self.connectors.add(self.connector)
        self.runner.check_changes()
        self.pool.release()
        self.failureResultOf(asked, NotFound)
        self.assertEqual(self.connector.sendings, [])

    def test_rewritten_meanwhile(self) -> None:
        """An action that is rewritten and trusted meanwhile runs as it lies there, its arguments read anew."""
        call = self.call("open", key="once")
        self.pool.hold()
        asked = self.later(self.runner.submission.submit(call))
        self.offer("open", step("put", inputs='text = "new"'), gated=False)
        self.pool.release()
        self.successResultOf(asked)
        self.assertEqual([each.request.operation for each in self.connector.sendings], ["put"])

    def test_taken_after_approval(self) -> None:
        """Trust that is taken back between decision and effect: nothing is sent."""
        run = self.submit()
        shown = self.shown(run)
        self.pool.hold()
        deciding = self.later(self.runner.decisions.decide(run.id, Decision(True, shown.digest, OPERATOR.id)))
        while not deciding.called:
            self.pool.step()
        self.trust.remove(TrustKind.ACTION, "gated")
        self.pool.release()
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.PENDING, []))
        self.assertIn("cannot run now", self.shown(run).stale or "")

    def test_never_unlocked(self) -> None:
        """While nobody's word is known nothing is offered, called untrusted, or asked about."""
        self.write("new", _TEXT, trusted=False)
        words = self.trust.trusted()
        self.unlock_anew(VaultState.LOCKED)
        self.trust._words = {}
        self.restart()
        self.assertEqual((self.errors(), self.runner.submission.offering().offers), ([], {}))
        self.fails(self.runner.trust.trust_items(), VaultLocked)
        self.fails(self.runner.submission.submit(self.call("new")), VaultLocked)
        run = self.submit()
        self.unlock_anew()
        self.trust.put(words)
        self.restart()
        self.assertEqual(len(self.errors()), 1)
        self.approve(run)
        self.assertIs(self.state(run), RunState.COMPLETED)


class DeskTests(TrustCase):
    """The operator's word."""

    def test_items(self) -> None:
        """Everything that lies there, and everything that is trusted, by how the two stand to each other."""
        self.write("new", _TEXT, trusted=False)
        self.write("gated", manifest("gated", step("put")), trusted=False)
        (self.directory / "open.md").unlink()
        found = self.items()
        self.assertEqual(
            {name: item.state for name, item in found.items()},
            {
                "new": TrustState.NEW,
                "gated": TrustState.CHANGED,
                "open": TrustState.GONE,
                _CONNECTOR: TrustState.GONE,  # it stands for no file
            },
        )
        lying = found["new"].candidate
        assert lying is not None
        self.assertEqual(
            (lying.text, lying.digest, lying.path), (_TEXT, _digest(_TEXT), str(self.directory / "new.md"))
        )
        self.assertEqual(lying.needs, (_CONNECTOR,))
        self.assertIsNone(found["open"].candidate)

    def test_connectors_and_configuration(self) -> None:
        """Connectors that are files, and the configuration, are asked about likewise, and on record as such."""
        self.connectors.of_files = frozenset({_CONNECTOR})
        self.trust.remove(TrustKind.CONNECTOR, _CONNECTOR)
        self.settings = (ConfigFile(),)
        self.restart()
        told = [error.file for error in self.runner.submission.offering().load_errors]
        self.assertIn("/home/config.yaml", told, "it is not told from the first moment on")
        found = self.items()
        self.assertEqual(found[_CONNECTOR].state, TrustState.NEW)
        self.assertEqual((found["config.yaml"].kind, found["config.yaml"].state), (TrustKind.CONFIG, TrustState.NEW))
        self.assertIn("it is not trusted", self.errors())
        self.give("config.yaml", "a: 1\n", TrustKind.CONFIG)
        digest = self.connector.description.content_hash
        self.sync(self.runner.trust.trust([(TrustKind.CONNECTOR, _CONNECTOR, digest)], OPERATOR))
        self.assertEqual({item.state for item in self.items().values()}, {TrustState.TRUSTED})
        self.assertEqual(set(self.runner.submission.offering().offers), {"gated", "open"})
        self.assertEqual(self.words("trust.given")[1][1:3], (None, _CONNECTOR))

    def test_before(self) -> None:
        """Of a changed file the text that was trusted is shown beside the new one, if it is known."""
        self.write("new", _TEXT, trusted=False)
        self.give("new", _TEXT)
        self.assertIsNone(self.items()["new"].before)
        self.write("new", _TEXT + "More.\n", trusted=False)
        self.assertEqual(self.items()["new"].before, _TEXT)
        self.sql("UPDATE trusted_texts SET text = 'harmless'")
        self.assertIsNone(self.items()["new"].before)

    def test_given(self) -> None:
        """What is trusted is kept with who and when, on record before; twice is safe."""
        self.write("new", _TEXT, trusted=False)
        (item,) = self.give("new", _TEXT)
        self.assertEqual((item.state, item.trusted), (TrustState.TRUSTED, self.trust.find(TrustKind.ACTION, "new")))
        assert item.trusted is not None
        self.assertEqual((item.trusted.digest, item.trusted.changed_by), (_digest(_TEXT), OPERATOR.id))
        payload = {"kind": "action", "name": "new", "digest": _digest(_TEXT), "before": None}
        self.assertEqual(self.words("trust.given"), [(OPERATOR.id, "new", None, payload)])
        self.give("new", _TEXT)
        self.assertEqual(self.words("trust.given")[1][3], {**payload, "before": _digest(_TEXT)})

    def test_not_what_was_shown(self) -> None:
        """Of several files one has changed since it was shown: none is trusted, and it is said which.

        What does not lie there cannot be trusted either, nor what is no action, nor what could not be kept.
        """
        self.write("new", _TEXT, trusted=False)
        self.write("other", _TEXT.replace('"new"', '"other"'), trusted=False)
        self.write("broken", "no action", trusted=False)
        wanted = [(TrustKind.ACTION, "new", _digest(_TEXT)), (TrustKind.ACTION, "other", "sha256:shown")]
        present = self.items()["other"].candidate
        assert present is not None
        error = self.fails(self.runner.trust.trust(wanted, OPERATOR), Conflict)
        self.assertEqual(error.details["items"], [{"kind": "action", "name": "other", "digest": present.digest}])
        for name in ("nothing", "broken"):
            self.fails(self.runner.trust.trust([(TrustKind.ACTION, name, "sha256:00")], OPERATOR), NotFound)
        self.assertEqual(self.words("trust.given"), [])
        self.trust.full = True
        self.fails(self.runner.trust.trust(wanted[:1], OPERATOR), StoreUnavailable)
        self.assertEqual(self.items()["new"].state, TrustState.NEW)
        self.assertNotIn("new", self.runner.submission.offering().offers)

    def test_taken(self) -> None:
        """Trust that is taken back withdraws the action, on record before; there is nothing to take twice."""
        self.sync(self.runner.trust.distrust(TrustKind.ACTION, "open", OPERATOR))
        self.assertEqual(set(self.runner.submission.offering().offers), {"gated"})
        self.assertEqual(self.words("trust.taken")[0][:2], (OPERATOR.id, "open"))
        self.fails(self.runner.trust.distrust(TrustKind.ACTION, "open", OPERATOR), NotFound)

    def test_locked(self) -> None:
        """While locked nothing is trusted, taken back or switched, and nothing is recorded as if it were."""
        self.write("new", _TEXT, trusted=False)
        self.vault.lock()
        self.fails(self.runner.trust.trust([(TrustKind.ACTION, "new", _digest(_TEXT))], OPERATOR), VaultLocked)
        self.fails(self.runner.trust.distrust(TrustKind.ACTION, "open", OPERATOR), VaultLocked)
        self.fails(self.runner.trust.set_enabled("open", False, OPERATOR), VaultLocked)
        self.assertEqual(self.items()["new"].state, TrustState.NEW)
        for type_ in ("trust.given", "trust.taken", "action.disabled"):
            self.assertEqual(self.words(type_), [])


class SwitchTests(TrustCase):
    """On and off."""

    def test_off_and_on(self) -> None:
        """An action that is off is listed as such and does not run, in later lives too, until it is on again.

        It stays off when its changed file is trusted.  What is not offered cannot be switched.
        """
        offer = self.sync(self.runner.trust.set_enabled("open", False, OPERATOR))
        self.assertFalse(offer.enabled)
        self.restart()
        changed = manifest("open", step("put"), gated=False)
        self.write("open", changed, trusted=False)
        self.give("open", changed)
        self.assertFalse(self.runner.submission.offering().offers["open"].enabled)
        error = self.fails(self.runner.submission.submit(self.call("open")), Conflict)
        self.assertEqual(error.details["enabled"], False)
        self.assertTrue(self.sync(self.runner.trust.set_enabled("open", True, OPERATOR)).enabled)
        self.submit("open")
        self.assertEqual(len(self.words("action.disabled") + self.words("action.enabled")), 2)
        self.write("new", _TEXT, trusted=False)
        for name in ("new", "nothing"):
            self.fails(self.runner.trust.set_enabled(name, True, AGENT), NotFound)

    def test_taken_meanwhile(self) -> None:
        """An action whose trust is taken back while it is switched is not trusted again by that."""
        self.pool.hold()
        taken = self.later(self.runner.trust.distrust(TrustKind.ACTION, "open", OPERATOR))
        switched = self.later(self.runner.trust.set_enabled("open", False, OPERATOR))
        while self.pool.todo:
            self.pool.step()
        self.successResultOf(taken)
        self.failureResultOf(switched, Conflict)
        self.assertIsNone(self.trust.find(TrustKind.ACTION, "open"))

    def test_trusted_meanwhile(self) -> None:
        """An action that is trusted anew while it is switched stays trusted as it was read last."""
        changed = manifest("open", step("put"), gated=False)
        self.pool.hold()
        switched = self.later(self.runner.trust.set_enabled("open", False, OPERATOR))
        self.write("open", changed)
        self.pool.release()
        self.failureResultOf(switched, Conflict)
        word = self.trust.find(TrustKind.ACTION, "open")
        assert word is not None
        self.assertEqual((word.digest, word.enabled), (_digest(changed), True))

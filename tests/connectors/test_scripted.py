"""Of the connector and the registry that other rooms' tests use."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.interfaces import IConnectors
from aileron.testing import ConnectorContract, MemoryConnectors, ScriptedConnector, scripted_description
from aileron.values import JSON, CredentialNeed, Outcome, digest

_NEED = CredentialNeed("api_key", "Authorization", "Bearer {key}")


@define
class ScriptedRig:
    """The scripted connector, in the contract's hand."""

    clock: Clock = field(factory=Clock)
    connector: ScriptedConnector = field()
    base_url: str = "https://scripted.invalid"
    reads: str = "look"
    writes: str = "post"
    inputs: Mapping[str, JSON] = field(factory=lambda: {"text": "hello"})

    @connector.default
    def _(self) -> ScriptedConnector:
        return ScriptedConnector(scripted_description(credential=_NEED), self.clock)

    def answers(self, output: JSON) -> None:
        """By script."""
        self.connector.script.append(Outcome(output=output))

    def hangs(self) -> None:
        """A Deferred that nobody fires."""
        self.connector.script.append(Deferred())

    def advance(self, seconds: float) -> None:
        """By the clock."""
        self.clock.advance(seconds)

    def sent(self) -> int:
        """As remembered."""
        return len(self.connector.sendings)


class ScriptedContractTests(ConnectorContract, SynchronousTestCase):
    """The double keeps the contract."""

    rig = ScriptedRig


class ScriptedConnectorTests(SynchronousTestCase):
    """What the double adds."""

    def test_effects_are_counted_by_key(self) -> None:
        """Every invocation counts for its effect key; reads do not."""
        connector = ScriptedConnector()
        for key, operation in (("a", "post"), ("b", "post"), ("a", "post")):
            request = connector.prepare(operation, {}, "https://scripted.invalid", key)
            self.successResultOf(Deferred.fromCoroutine(connector.invoke(request, None, 1)))
        look = connector.prepare("look", {}, "https://scripted.invalid", "a")
        self.successResultOf(Deferred.fromCoroutine(connector.read(look, None, 1)))
        self.assertEqual({"a": 2, "b": 1}, dict(connector.effects()))

    def test_scripted_bug(self) -> None:
        """An exception of the script is raised as it stands."""
        connector = ScriptedConnector(script=[ZeroDivisionError()])
        request = connector.prepare("post", {}, "https://scripted.invalid", "a")
        self.failureResultOf(Deferred.fromCoroutine(connector.invoke(request, None, 1)), ZeroDivisionError)


class MemoryConnectorsTests(SynchronousTestCase):
    """The registry double."""

    def test_holds_what_it_was_given(self) -> None:
        """It provides the interface, and each change grows the generation."""
        connector = ScriptedConnector()
        registry = MemoryConnectors.of([connector])
        verifyObject(IConnectors, registry)
        self.assertIs(connector, registry.get("local://test/scripted"))
        before = registry.generation()
        successor = registry.replace(connector, "2.0.0")
        self.assertIs(successor, registry.get("local://test/scripted"))
        self.assertGreater(registry.generation(), before)
        self.assertNotEqual(connector.describe().content_hash, successor.describe().content_hash)
        registry.remove("local://test/scripted")
        self.assertEqual((), registry.descriptions())

    def test_files(self) -> None:
        """What stands for a file is a candidate of its present content; nothing else is."""
        connector = ScriptedConnector()
        registry = MemoryConnectors.of([connector])
        self.assertEqual((), registry.candidates())
        registry.of_files = frozenset({"local://test/scripted"})
        registry.replace(connector, "2.0.0")
        self.assertEqual([digest("2.0.0")], [each.digest for each in registry.candidates()])

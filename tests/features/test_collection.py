"""The collection of features: which are on, and what they add together."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, cast

from attrs import fields, frozen
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.base.http1 import RelayHandler, RequestHead, parse_request
from aileron.base.yaml_keys import Key, NotConfig, switch, with_key
from aileron.daemon._config import Config, read_config, read_switches
from aileron.features import Core, Feature, FeatureSet, RunningFeature, RunningFeatures
from aileron.features._collection import load_foreign
from aileron.model.errors import InvalidRequest
from aileron.model.interfaces.features import IFeature

from .example import ExampleFeature


class _Needy(Feature):
    """A feature that needs the example."""

    name = "needy"
    summary = "Needs the example."
    needs = ("example",)


_FEATURE = """
from aileron.features.feature import Feature

class Acme(Feature):
    name = "{name}"
    summary = "Does nothing."

FEATURE = Acme()
"""


def install(root: Path, text: str, package: str, name: str) -> None:
    """Install a package with a feature into a directory, as pip would."""
    (root / package).mkdir(parents=True, exist_ok=True)
    (root / package / "__init__.py").write_text(text, "utf-8")
    about = root / f"{package}-1.0.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", "utf-8")
    (about / "entry_points.txt").write_text(f"[aileron.features]\n{name} = {package}:FEATURE\n", "utf-8")


_TAKEN = ["one", "two", "two"]


@frozen(eq=False)
class _RunningRelay(RunningFeature):
    """A feature that takes the requests for its name and for C{/both}.

    :ivar found: the name of the one that it found started before it.
    """

    name: str
    found: str | None

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        return (self,)

    def take_requests(self, routes: Any) -> Any:
        return self

    def route(self, head: RequestHead, client: Any) -> Any:
        return self.name if head.target in {f"/{self.name}".encode(), b"/both"} else None


class _Relay(Feature):
    """A feature that relays."""

    summary = "Relays."

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]

    async def start(self, core: Core) -> RunningFeature:
        before = core.find(_RunningRelay)
        return _RunningRelay(self.name, None if before is None else before.name)


def _ask(taker: RelayHandler, target: bytes) -> Any:
    return taker.route(parse_request(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n\r\n"), cast(Any, None))


class CollectionTests(SynchronousTestCase):
    """Features of this package, and one of another."""

    def setUp(self) -> None:
        self.known = FeatureSet((*FeatureSet().known, ExampleFeature(), _Needy()))

    def test_contract(self) -> None:
        """Every feature keeps the contract, and has a summary and a name of its own."""
        for each in self.known.known:
            verifyObject(IFeature, each)
            self.assertTrue(each.summary.endswith("."), each.name)
        names = [each.name for each in self.known.known]
        self.assertEqual(len(names), len(set(names)))

    def test_all_on(self) -> None:
        """Without a word in config.yaml all are on, and what each adds is there."""
        self.assertEqual(self.known.off, ())
        self.assertEqual(self.known.commands()["example"].part, "Inspect")
        self.assertIn("/example", self.known.pages())
        self.assertEqual(self.known.navigation()["/example"], "Example")
        self.assertEqual(len(self.known.routes()), len(FeatureSet().routes()) + 1)

    def test_off(self) -> None:
        """A feature that is off adds nothing but keys and names of events, and takes along what needs it."""
        without = self.known.without("example")
        self.assertEqual(without.off, ("example", "needy"))
        self.assertEqual(dict(without.off_commands()), {"example": "example"})
        self.assertNotIn("/example", without.pages())
        self.assertNotIn("example", without.commands())
        self.assertIn("example", without.settings())
        self.assertIn("example.shown", without.event_types())
        self.assertNotIn("example.shown", without.notices())

    def test_configuration(self) -> None:
        """config.yaml switches features, and has the settings of those that are known."""
        read = read_config("features: {notices: off}\nexample: {loud: true}\n", self.known)
        self.assertEqual((read.features, read.of_features), ({"notices": False}, {"example": {"loud": True}}))
        self.assertEqual(read_config("", self.known), Config())
        self.assertEqual(read_switches("features:\n  a: on\n  b: false\n"), {"a": True, "b": False})
        for text, line in (("features: [notices]", 1), ("features:\n  notices: maybe", 2), ("features:\n  No!: on", 2)):
            error = self.assertRaises(NotConfig, read_config, text, self.known)
            self.assertEqual(error.line, line)

    def test_key_within(self) -> None:
        """A feature can have a key in another's section; without such a section the key is refused."""
        read = read_config("gateway: {in_band_turns: 3, providers: {openai: {provider_tools: note}}}", FeatureSet())
        gateway = read.of_features["gateway"]
        self.assertEqual(gateway.of_features, {"in_band_turns": 3})
        self.assertEqual([*gateway.providers[0].of_features], ["provider_tools"])
        with self.assertRaises(KeyError):
            with_key({}, "nowhere.key", Key(switch, "", ""))
        with self.assertRaises(NotConfig):
            read_config("gateway: {providers: {openai: {in_band_turns: 3}}}", FeatureSet())

    def test_order(self) -> None:
        """Each feature finds those that started before it, and its handler stands before theirs."""
        running = self.started(_Relay("one"), _Relay("two"))
        self.assertEqual([each.found for each in running.running if isinstance(each, _RunningRelay)], [None, "one"])
        taker = running.take_requests(cast(Any, None))
        self.assertEqual([_ask(taker, target) for target in (b"/one", b"/two", b"/both", b"/none")], [*_TAKEN, None])

    def started(self, *features: Feature) -> RunningFeatures:
        """Start features over a core without any doors."""
        nothing: dict[str, Any] = {each.name: None for each in fields(Core) if each.init}
        core = Core(**nothing)
        return self.successResultOf(Deferred.fromCoroutine(FeatureSet(features).start(core)))

    def test_announced(self) -> None:
        """A line about the environment does not depend on config.yaml: the daemon may obey that, or not."""
        environ = {"AILERON_OPENAI_BASE_URL": "http://127.0.0.1:9/evil"}
        self.assertIn("AILERON_OPENAI_BASE_URL", "".join(FeatureSet().without("gateway").announce_environment(environ)))

    def test_foreign_loaded(self) -> None:
        """A feature of another package is loaded if one installed package has it, outside the working directory."""
        self.installed("acme_one", "acme")
        self.assertEqual([each.name for each in load_foreign(["acme"])], ["acme"])
        for number, wrong in enumerate(("FEATURE = object()", "raise ValueError", _FEATURE.format(name="gateway"))):
            self.installed(f"acme_{number}", f"bad{number}", wrong)
            error = self.assertRaises(InvalidRequest, load_foreign, [f"bad{number}"])
            self.assertIn(f"bad{number}", error.message)
        self.installed("acme_two", "acme")
        error = self.assertRaises(InvalidRequest, load_foreign, ["acme"])
        self.assertIn("acme_one", error.message)
        here = self.installed("acme_here", "here")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(here)
        self.assertIn("working directory", self.assertRaises(InvalidRequest, load_foreign, ["here"]).message)
        self.assertNotIn("acme_here", sys.modules)

    def installed(self, package: str, name: str, text: str = "") -> Path:
        """Install a package with a feature, until the test ends, and return its place."""
        root = Path(mkdtemp())  # trial works in a directory that holds those of L{mktemp}
        install(root, text or _FEATURE.format(name=name), package, name)
        before = list(sys.path)
        sys.path.insert(0, str(root))
        importlib.invalidate_caches()

        def forget() -> None:
            sys.path[:] = before
            sys.modules.pop(package, None)
            rmtree(root, ignore_errors=True)

        sys.modules.pop(package, None)
        self.addCleanup(forget)
        return root

    def test_foreign(self) -> None:
        """The settings of a feature that is not loaded are left alone; one that nobody has is refused, by name."""
        read = read_config("features: {acme: on}\nacme: {anything: [1]}\n", FeatureSet())
        self.assertEqual((read.features, read.of_features), ({"acme": True}, {}))
        error = self.assertRaises(InvalidRequest, FeatureSet().switch, read.features)
        self.assertIn("acme", error.message)

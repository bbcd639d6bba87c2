"""The collection of features: which are on, and what they add together."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.base.yaml_keys import NotConfig
from aileron.daemon._config import Config, read_config, read_switches
from aileron.features import FeatureSet
from aileron.features.feature import Feature
from aileron.model.errors import InvalidRequest
from aileron.model.interfaces.features import IFeature

from .example import ExampleFeature


class _Needy(Feature):
    """A feature that needs the example."""

    name = "needy"
    summary = "Needs the example."
    needs = ("example",)


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

    def test_foreign(self) -> None:
        """The settings of a feature that is not loaded are left alone; one that nobody has is refused, by name."""
        read = read_config("features: {acme: on}\nacme: {anything: [1]}\n", FeatureSet())
        self.assertEqual((read.features, read.of_features), ({"acme": True}, {}))
        error = self.assertRaises(InvalidRequest, FeatureSet().switch, read.features)
        self.assertIn("acme", error.message)

"""Connectors say which spellings of a recipient are one: limits count it once, and a denial reaches each."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementedBy

from aileron.base.json import JSON
from aileron.connectors._recipients import normalize_recipients
from aileron.connectors._screened import Screened
from aileron.connectors.kinds.command._connector import CommandConnector
from aileron.connectors.kinds.git import GitConnector
from aileron.connectors.kinds.http import HttpConnector
from aileron.connectors.kinds.mail.connector import MailConnector
from aileron.connectors.kinds.mcp._connector import McpConnector
from aileron.model.connectors import WRITE, Operation
from aileron.model.interfaces.connectors import IInputNormalizer
from aileron.testing import ScriptedConnector

from .mailhost import MailHost
from .test_builtin import spec

PLAIN = Operation("post", WRITE, idempotent=False)


class RecipientTests(SynchronousTestCase):
    """Inputs that hold recipients."""

    def test_kinds(self) -> None:
        """Every kind of connector that ships knows it."""
        for kind in (HttpConnector, GitConnector, MailConnector, CommandConnector, McpConnector, Screened):
            self.assertIn(IInputNormalizer, list(implementedBy(kind)))  # type: ignore[no-untyped-call]

    def test_named(self) -> None:
        """Without a presentation the input's name tells; what holds no address stays as it is."""
        same: tuple[JSON, ...] = ("Bob <b@x.org>", "b@x.org", ["b@x.org", "Bob <B@x.org>"], "b@x.org,")
        for value in same:
            self.assertEqual(normalize_recipients(PLAIN, "to", value), ["b@x.org"], value)
            self.assertEqual(normalize_recipients(PLAIN, "text", value), value)
        others: tuple[JSON, ...] = ("general", 3, None, [1, "b@x.org"], {"to": "b@x.org"}, [], "1 Main Street, Leeds")
        for value in others:
            self.assertEqual(normalize_recipients(PLAIN, "to", value), value)

    def test_presented(self) -> None:
        """The presentation names the recipients of a mail or an event, and the channel of a message."""
        gmail = spec("gmail").description.operations["send"]
        self.assertEqual(normalize_recipients(gmail, "to", "b@x.org, A <a@x.org>"), ["a@x.org", "b@x.org"])
        slack = next(each for each in spec("slack").description.operations.values() if each.presentation is not None)
        assert slack.presentation is not None
        for name in slack.presentation.parts["to"]:
            self.assertEqual(normalize_recipients(slack, name, "#general"), "general")

    def test_mail(self) -> None:
        """An account's recipients count as the server is told them."""
        connector = MailHost().connector()
        for value in ("bob <b@x.org>", '"b, bob" <b@x.org>', "b@x.org", ["b@x.org"]):
            self.assertEqual(connector.normalize_input("send_mail", "to", value), ["b@x.org"], value)
        self.assertEqual(connector.normalize_input("send_mail", "subject", "bob <b@x.org>"), "bob <b@x.org>")

    def test_plugin(self) -> None:
        """A plugin that knows it is asked, and one that does not leaves every value as it is."""
        screened = Screened(ScriptedConnector())
        self.assertEqual(screened.normalize_input("post", "to", "Bob <b@x.org>"), ["b@x.org"])
        self.assertEqual(screened.normalize_input("post", "text", "Bob <b@x.org>"), "Bob <b@x.org>")

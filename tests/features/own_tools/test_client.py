"""What a launcher asks the daemon for, and the environment that it makes of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import AnswerNotUnderstood, DaemonFault
from aileron.features.own_tools.client import OpenedServices, list_configured, open_services
from aileron.model.faults import Fault

ANSWER: Mapping[str, Any] = {
    "services": [{"name": "github", "connector": "builtin://github"}],
    "certificate": "-----BEGIN CERTIFICATE-----\n",
    "hosts": ["api.github.com"],
    "variables": {"GH_TOKEN": "aileron-placeholder"},
}


@frozen
class AnsweringDaemon:
    """Answers what a test says, to the one request that is expected."""

    answer: Mapping[str, Any]

    async def post(self, *path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer."""
        assert (path, body) == (("sessions", "S1", "own-tools"), {"services": ["github"]}), (path, body)
        return self.answer


class OpenTests(SynchronousTestCase):
    """L{open_services}."""

    def opening(self, answer: Mapping[str, Any]) -> Deferred[OpenedServices]:
        """Ask a daemon that answers so."""
        daemon: Any = AnsweringDaemon(answer)
        return Deferred.fromCoroutine(open_services(daemon, "S1", ("github",)))

    def test_opened(self) -> None:
        """The answer is read whole."""
        opened = self.successResultOf(self.opening(ANSWER))
        self.assertEqual(
            opened,
            OpenedServices(("github",), ANSWER["certificate"], ("api.github.com",), ANSWER["variables"]),
        )

    def test_odd(self) -> None:
        """An answer that lacks a part, or has another type there, is not understood."""
        for name in ANSWER:
            for answer in ({key: value for key, value in ANSWER.items() if key != name}, {**ANSWER, name: 1}):
                self.failureResultOf(self.opening(answer), AnswerNotUnderstood)


@frozen
class ConfiguredDaemon:
    """Answers what is configured, or with an error of a status."""

    status: int = 200

    async def get(self, *path: str) -> Mapping[str, Any]:
        """Answer."""
        assert path == ("sessions", "S1", "own-tools"), path
        if self.status != 200:
            raise DaemonFault("No.", self.status, Fault("not_found", "No."))
        return {"services": ["github"]}


class ConfiguredTests(SynchronousTestCase):
    """L{list_configured}."""

    def asking(self, status: int = 200) -> Deferred[tuple[str, ...]]:
        """Ask a daemon that answers so."""
        daemon: Any = ConfiguredDaemon(status)
        return Deferred.fromCoroutine(list_configured(daemon, "S1"))

    def test_answers(self) -> None:
        """A daemon without own tools has no services; any other error is one."""
        self.assertEqual(self.successResultOf(self.asking()), ("github",))
        self.assertEqual(self.successResultOf(self.asking(404)), ())
        self.failureResultOf(self.asking(503), DaemonFault)


class EnvironmentTests(SynchronousTestCase):
    """L{OpenedServices.replace_credentials}."""

    def setUp(self) -> None:
        self.opened = OpenedServices(
            ("github",), "", (), {"GH_TOKEN": "placeholder-1", "GITHUB_TOKEN": "placeholder-2"}
        )

    def test_placeholders(self) -> None:
        """Placeholders are there whether the user has such variables or not; other variables are kept."""
        found = self.opened.replace_credentials({"GH_TOKEN": "ghp_canary", "HOME": "/home/me", "EMPTY": ""})
        self.assertEqual(
            found, {"GH_TOKEN": "placeholder-1", "GITHUB_TOKEN": "placeholder-2", "HOME": "/home/me", "EMPTY": ""}
        )

    def test_same_value(self) -> None:
        """A credential that the user has under another name too is replaced there."""
        found = self.opened.replace_credentials({"GH_TOKEN": "ghp_canary", "HOMEBREW_TOKEN": "ghp_canary"})
        self.assertNotIn("ghp_canary", found.values())

    def test_part(self) -> None:
        """A credential is replaced in a longer value too, such as a header. A short text is not taken for one."""
        header = "GIT_CONFIG_VALUE_0"
        found = self.opened.replace_credentials({"GH_TOKEN": "ghp_canary", header: "Authorization: Bearer ghp_canary"})
        self.assertEqual(found[header], "Authorization: Bearer placeholder-1")
        self.assertEqual(self.opened.replace_credentials({"GH_TOKEN": "me", "HOME": "/home/me"})["HOME"], "/home/me")

    def test_removed(self) -> None:
        """A variable with an empty placeholder is removed; a region is set, and its old value stays elsewhere."""
        variables = {"AWS_ACCESS_KEY_ID": "placeholder-1", "AWS_SESSION_TOKEN": "", "AWS_REGION": "eu-central-1"}
        opened = OpenedServices(("aws",), "", (), variables)
        theirs = {"AWS_SESSION_TOKEN": "canary-token", "TOKEN": "canary-token", "AWS_REGION": "us-east-1"}
        found = opened.replace_credentials({**theirs, "OTHER": "https://us-east-1.example"})
        expected = {"TOKEN": "", "AWS_REGION": "eu-central-1", "OTHER": "https://us-east-1.example"}
        self.assertEqual(found, {"AWS_ACCESS_KEY_ID": "placeholder-1", **expected})
        self.assertEqual(dict(opened.placeholders), {"AWS_ACCESS_KEY_ID": "placeholder-1"})

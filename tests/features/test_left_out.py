"""Without each feature, without all, and with one of another package: the rest works, and nothing of it is left."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from treq.testing import StubTreq
from twisted.internet.defer import maybeDeferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.api._sites import SiteRoutes, agent_routes, agent_site, operator_routes, operator_site
from aileron.cli._tree import COMMANDS, OLD_NAMES, within
from aileron.features import FeatureSet
from aileron.model.interfaces.features import IFeature
from aileron.web import pages
from tests.api.case import COOKIE, Heard, Site
from tests.cli.daemon import CommandCase
from tests.promises.doors import DoorCase

from .example import ExampleFeature

_ALL = FeatureSet()

_COMPOSE = """
import json, os, sys
import aileron.daemon._compose, aileron.daemon._sites, aileron.api, aileron.web, aileron.cli._main
from attrs import NOTHING, fields, validators
from twisted.internet.task import Clock
from aileron.api import Dependencies, agent_site, operator_site
from aileron.features import FeatureSet, RunningFeatures

def compose(off):
    features = FeatureSet().without(*off)
    needed = [each.name for each in fields(Dependencies) if each.init and each.default is NOTHING]
    with validators.disabled():
        parts = {**dict.fromkeys(needed), "clock": Clock()}
        deps = Dependencies(**parts, features=RunningFeatures(features))
    agent_site(deps), operator_site(deps), aileron.web.pages(deps, None)
    features.settings(), features.event_types(), features.notices(), features.members("status")
    features.doctor_checks(), features.slots("home")
    parts = [each.split(".") for each in sys.modules if each.startswith("aileron.features.")]
    return [part for part in parts if part[2] in features.off and part[3:] not in ([], ["settings"], ["values"])]

names = [each.name for each in FeatureSet().known]
for off in [names, *([name] for name in names)]:
    if os.fork() == 0:
        print(json.dumps([off, compose(off)]), flush=True)
        os._exit(0)
    os.wait()
"""


def _combinations() -> Iterable[FeatureSet]:
    """Return the features without each in turn, without all, and with one of another package."""
    yield from (_ALL.without(each.name) for each in _ALL.known)
    yield _ALL.without(*(each.name for each in _ALL.known))
    yield FeatureSet((*_ALL.known, ExampleFeature()))


def _describe(features: FeatureSet) -> str:
    return f"without {', '.join(features.off) or 'none'}"


def _left_out(features: FeatureSet) -> list[IFeature]:
    return [each for each in features.known if each not in features.on]


def _routes(site: SiteRoutes) -> set[tuple[str, str]]:
    return {(endpoint.method, endpoint.path) for endpoint, _allowed in site.endpoints}


def _address(path: str) -> str:
    """Return a path of that pattern."""
    return re.sub(r"<[\w:]+>", "none", path)


class JobTests(DoorCase):
    """The main job, and the surfaces, with what is left."""

    def compose(self, features: FeatureSet) -> None:
        """Make both sites and the pages with these features."""
        deps = self.dependencies(features)
        resource, _routes = agent_site(deps)
        self.agents = Site(self, resource, agent_routes(features))
        web = pages(deps, maybeDeferred)
        self.operator = Site(self, operator_site(deps, lambda: web), operator_routes(features))
        self.token = self.operators.log_in()[0]
        self.browser, _session = self.operators.open_browser()

    def page(self, path: str) -> Heard:
        """Return what the browser that is logged in gets there."""
        client: Any = StubTreq(self.operator.resource)
        headers = self.browser.headers(COOKIE, "GET", path)
        response = self.successResultOf(client.get(f"http://localhost:7001{path}", headers=headers))
        return Heard(response.code, None, {}, self.successResultOf(response.text("utf-8")))

    def test_main_job(self) -> None:
        """A gated call is asked for, shown on the page and by the API, approved, executed once, and recorded."""
        for number, features in enumerate(_combinations()):
            self.compose(features)
            words = f"hello {number}"
            asked = self.agents.ask("POST", "/v1/actions/gated/run", self.TOKEN, {"args": {"text": words}})
            self.assertEqual(asked.status, 202, _describe(features))
            run_id = asked.json["run_id"]
            one = f"/v1/action-approvals/{run_id}"
            shown = self.operator.ask("GET", one, self.token)
            drawn = self.page(f"/fragments/approvals/{run_id}")
            self.assertEqual((shown.status, drawn.status), (200, 200), _describe(features))
            self.assertIn(words, shown.text)
            self.assertIn(words, drawn.text)
            self.assertEqual(self.sent, number, "nothing leaves before the decision")
            body = {"approved": True, "digest": shown.json["digest"]}
            self.assertEqual(self.operator.ask("POST", f"{one}/decide", self.token, body).status, 200)
            ended = self.agents.ask("GET", f"/v1/runs/{run_id}", self.TOKEN)
            self.assertEqual((ended.json["state"], self.sent), ("completed", number + 1), _describe(features))
            record = self.operator.ask("GET", f"/v1/audit?run={run_id}", self.token)
            types = {each["type"] for each in record.json["items"]}
            self.assertLessEqual({"approval.approved", "execution.succeeded"}, types, _describe(features))
        self.assert_sound()

    def test_routes(self) -> None:
        """The routes of a feature that is left out are gone from both sites, and all others are there."""
        everything = agent_routes(_ALL), operator_routes(_ALL)
        for features in _combinations():
            self.compose(features)
            tables = [table for each in _left_out(features) for table in each.routes()]
            gone = {(endpoint.method, endpoint.path) for table in tables for endpoint in table.endpoints}
            new = {(end.method, end.path) for each in features.on for table in each.routes() for end in table.endpoints}
            for whole, left in zip(everything, (agent_routes(features), operator_routes(features)), strict=True):
                self.assertEqual(_routes(whole) - _routes(left), gone & _routes(whole), _describe(features))
                self.assertLessEqual(_routes(left) - _routes(whole), new, _describe(features))
            for method, path in sorted(gone):
                for site, token in ((self.agents, self.TOKEN), (self.operator, self.token)):
                    self.assertIn(site.ask(method, _address(path), token).status, (404, 405), f"{method} {path}")

    def test_pages(self) -> None:
        """The pages of a feature that is left out are gone, and its name is not in the navigation; others are drawn."""
        self.runner.check_changes()
        for features in _combinations():
            self.compose(features)
            shell = self.page("/home").text
            for each in _left_out(features):
                for path in each.pages():
                    self.assertEqual(self.page(f"/fragments{_address(path)}").status, 404, path)
                for path in each.navigation:
                    self.assertNotIn(f'href="{path}"', shell)
            for path in ("/home", "/approvals", "/sessions", "/settings", "/actions", "/connectors", "/audit", "/runs"):
                drawn = self.page(f"/fragments{path}")
                self.assertEqual(drawn.status, 200, f"{path} {_describe(features)}: {drawn.text}")
            for each in features.on:
                for path, title in each.navigation.items():
                    self.assertIn(title, shell, path)

    def test_status(self) -> None:
        """The daemon's status, which features add to, is what the route declares."""
        for features in _combinations():
            self.compose(features)
            self.assertEqual(self.operator.ask("GET", "/v1/status", self.token).status, 200, _describe(features))


class CommandTests(CommandCase):
    """Commands where config.yaml has features off."""

    def test_off(self) -> None:
        """Each command of a feature that is off says so in one sentence, and commands of the core work."""
        for features in (_ALL.without(each.name) for each in _ALL.known):
            switches = "".join(f"  {name}: off\n" for name, on in features.switches.items() if not on)
            self.home.config.write_text(f"features:\n{switches}")
            self.home.config.chmod(0o600)
            off = features.off_commands()
            for command, feature in off.items():
                code, _out, err = self.command(*command.split())
                group = command.partition(" ")[0]
                named = group if group in off else command
                said = f"The command aileron {named} is off: config.yaml has the feature {feature} off."
                self.assertEqual((code, err.splitlines()[0]), (1, f"aileron: {said}"), command)
            for old, present in OLD_NAMES.items():
                gone = next((each for each in off if f"{present.now} ".startswith(f"{each} ")), None)
                if gone is not None:
                    self.assertIn(f"aileron {gone} is off", self.command(old)[2], old)
            self.assertEqual(self.command("version")[0], 0)
            self.assertEqual(self.command("--help", "--all")[0], 0)

    def test_cause(self) -> None:
        """A feature that is off because it needs another names the one that config.yaml has off."""
        features = _ALL.without("gateway")
        self.assertEqual([features.find_switched_off(name) for name in ("gateway", "inband")], ["gateway"] * 2)
        self.assertEqual(_ALL.without("gateway", "inband").find_switched_off("inband"), "inband")

    def test_known(self) -> None:
        """Every command of a feature is found by the name that its feature gives it."""
        for command in _ALL.commands():
            group, _, name = command.partition(" ")
            self.assertTrue(command in COMMANDS or name in within(group) or command in OLD_NAMES, command)


class ImportTests(SynchronousTestCase):
    """The modules of a process."""

    def test_not_imported(self) -> None:
        """The composition of the daemon, its sites, its pages and the commands imports no part that acts.

        What is left out may have settings in config.yaml, so these and their values are known.
        """
        done = subprocess.run((sys.executable, "-c", _COMPOSE), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line for line in done.stdout.splitlines() if not line.endswith("[]]")], [], done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), len(_ALL.known) + 1, done.stderr)

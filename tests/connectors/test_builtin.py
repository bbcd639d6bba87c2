"""The contract of every connector that comes with the package, and of the actions that are ready for it."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import KnownValues, check_arguments, parse, resolve_inverse, tool_name
from aileron.connectors import replay
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.http._spec import HttpSpec
from aileron.features.setup.services import find_services
from aileron.model.actions import Action
from aileron.model.connectors import READ

BUILTIN = Path(str(files("aileron.connectors"))) / "builtin"
FACTS = json.loads((Path(__file__).parent / "facts.json").read_text("utf-8"))
"""For some services: each path's query parameters, members of its body and scopes, as the providers publish them."""
BEYOND = {("slack", "client_msg_id")}
"""Members that Slack takes, although its published specification is older."""
NAMES = sorted(path.stem for path in BUILTIN.glob("*.toml") if path.name.count(".") == 1)
WRITTEN = ["smtp"]
"""Services whose connector's file is written when they are connected; see L{tests.features.setup.test_mail}."""
_ALONE = re.compile(r"^# .*\n(?:# .*\n)*\n?\[operations\.(\w+)\]", re.MULTILINE)


def spec(name: str) -> HttpSpec:
    """One connector, read."""
    reading = read_file((BUILTIN / f"{name}.toml").read_bytes(), name, "builtin")
    assert isinstance(reading.spec, HttpSpec), reading.problems
    return reading.spec


def actions(name: str) -> dict[str, Action]:
    """The actions that are ready for it, by the names of their files."""
    paths = sorted((BUILTIN / "actions" / name).glob("*.md"))
    return {path.stem: parse(path.read_bytes(), path.name) for path in paths}


class BuiltinTests(SynchronousTestCase):
    """All of them."""

    def test_fixtures(self) -> None:
        """Recorded answers come out as recorded: of each operation a success and a failure, of each look one."""
        for name in NAMES:
            replayed = replay(f"builtin://{name}", BUILTIN)
            assert replayed is not None
            self.assertEqual(replayed.problems, (), name)
            for operation, each in spec(name).operations.items():
                seen = set(replayed.seen[operation])
                self.assertIn("done", seen, f"{name}.{operation}")
                self.assertTrue(seen & {"refused", "unknown"}, f"{name}.{operation}")
                self.assertEqual("reconcile" in seen, each.lookup is not None, f"{name}.{operation}")

    def test_declared(self) -> None:
        """Each operation says what it does; a write also whether it destroys, and how a lost answer is settled."""
        for name in NAMES:
            text = (BUILTIN / f"{name}.toml").read_text("utf-8")
            excused = set(_ALONE.findall(text))
            for operation, each in spec(name).operations.items():
                table = text.partition(f"[operations.{operation}]\n")[2].partition("\n[")[0]
                self.assertIn("effect = ", table, f"{name}.{operation}")
                self.assertTrue(each.operation.description, f"{name}.{operation}")
                if each.operation.effect == READ:
                    continue
                self.assertIn("destructive = ", table, f"{name}.{operation}")
                self.assertIn("idempotent = ", table, f"{name}.{operation}")
                settled = each.operation.idempotent or each.operation.reconcilable
                self.assertTrue(settled or operation in excused, f"{name}.{operation}")
                if each.method == "DELETE" or operation.startswith("delete"):
                    self.assertTrue(each.operation.destructive, f"{name}.{operation}")

    def test_replaced(self) -> None:
        """A write that replaces what was there destroys it, and an action that may lose answers of people says so."""
        self.assertTrue(spec("telegram").operations["react"].operation.destructive)
        for name, file in (("google_calendar", "google-update-event"), ("microsoft365", "outlook-update-event")):
            action = actions(name)[file]
            (attendees,) = (each for each in action.inputs if each.name == "attendees")
            for told in (action.description, attendees.description):
                self.assertIn("answers may be lost", told.replace("\n", " "))

    def test_actions(self) -> None:
        """Each operation has an action that fits it, unless it only looks up effects; reads are free, writes asked."""
        for name in NAMES:
            connector, used = spec(name), set()
            for file, action in actions(name).items():
                self.assertEqual(action.name, file)
                (step,) = action.steps
                operation = connector.operations[step.operation].operation
                self.assertEqual(step.connector, f"builtin://{name}", file)
                self.assertEqual(action.approval.gated, operation.effect != READ, file)
                self.assertLessEqual(set(step.inputs), connector.operations[step.operation].inputs, file)
                (pin,) = action.connectors
                self.assertEqual(pin.version, connector.description.version, file)
                self.assertLessEqual(set(pin.capabilities), set(connector.operations), file)
                self.assertLessEqual(len(action.description), 200, file)
                used |= set(pin.capabilities)
            lookups = {each.lookup.operation for each in connector.operations.values() if each.lookup}
            self.assertEqual(set(connector.operations) - used - lookups, set(), name)

    def test_undone(self) -> None:
        """What undoes an action is one of the same service that needs approval, and takes what the run gives it."""
        undone = 0
        for name in NAMES:
            ready = actions(name)
            recorded = tomllib.loads((BUILTIN / f"{name}.fixtures.toml").read_text("utf-8"))["operations"]
            for action in ready.values():
                if action.inverse is None:
                    continue
                (step,), inverse = action.steps, {each.name: each for each in ready.values()}[action.inverse.action]
                self.assertTrue(inverse.approval.gated, action.name)
                done = next(each for each in recorded[step.operation] if "inputs" in each)
                given = {
                    str(template).removeprefix("${args.").removesuffix("}"): done["inputs"][key]
                    for key, template in step.inputs.items()
                    if key in done["inputs"]
                }
                known = KnownValues(given, {step.id: done.get("output")})
                self.assertTrue(check_arguments(inverse, resolve_inverse(action.inverse, known)), action.name)
                undone += 1
        self.assertGreater(undone, 10)

    def test_names(self) -> None:
        """No two actions have one name, or one tool name, and each connector is a service that can be connected."""
        self.assertEqual(set(find_services()), {*NAMES, *WRITTEN})
        named = Counter(tool_name(each) for name in (*NAMES, *WRITTEN) for each in actions(name))
        self.assertEqual([each for each, count in named.items() if count > 1], [])

    def test_published(self) -> None:
        """Paths, parameters, members of bodies and scopes are among those that the providers publish."""
        for name, facts in FACTS.items():
            for operation, each in spec(name).operations.items():
                segments = ("{}" if "${" in segment else segment for segment in each.segments)
                published = facts[f"{each.method} /{'/'.join(segments)}"]
                self.assertLessEqual(set(each.query), set(published["query"]), f"{name}.{operation}")
                template = each.body.template if each.body and each.body.kind != "mail" else {}
                body = (
                    {key for key in template if (name, key) not in BEYOND} if isinstance(template, Mapping) else set()
                )
                self.assertLessEqual(body, set(published["body"]), f"{name}.{operation}")
                scopes = set(published.get("scopes", ()))
                self.assertLessEqual(set(each.operation.scopes), scopes, f"{name}.{operation}")
                self.assertEqual(bool(each.operation.scopes), bool(scopes), f"{name}.{operation}")
                self.assertEqual(each.operation.lookup, each.lookup and each.lookup.operation)

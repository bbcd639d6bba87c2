"""The files for several daemons, of Docker Compose and of Kubernetes, against the program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from twisted.trial.unittest import SynchronousTestCase

from aileron import __version__
from aileron.api._sites import agent_routes
from aileron.daemon._config import StoreSettings
from aileron.daemon._drain import longest_stop

_ROOM = Path(__file__).resolve().parent.parent / "packaging"
_CHART = _ROOM / "helm" / "aileron"
_PLACE = re.compile(r"\{\{ \.(Values|Release|Chart)\.([\w.]+) \}\}")
_USER = 10001
_PATHS = {endpoint.path for endpoint, _ in agent_routes().endpoints if endpoint.method == "GET"}


class _Strict(yaml.SafeLoader):
    """Refuses a key that a mapping has twice, of which other readers take the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        assert len(names) == len(set(names)), f"{node.start_mark}: a key is there twice"
        return super().construct_mapping(node, deep)


def _load(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), _Strict)


def render() -> Iterator[Mapping[str, Any]]:
    """Yield the chart's resources with its own values. The templates name values, and use nothing else of Helm's."""
    known = {"Values": _load(_CHART / "values.yaml"), "Release": {"Name": "one"}, "Chart": _load(_CHART / "Chart.yaml")}

    def find(found: re.Match[str]) -> str:
        value: Any = known[found[1]]
        for name in found[2].split("."):
            value = value[name]
        return str(value)

    for path in sorted((_CHART / "templates").glob("*.yaml")):
        text = _PLACE.sub(find, path.read_text(encoding="utf-8"))
        assert "{{" not in text, path
        yield from yaml.load_all(text, _Strict)


class ComposeTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.compose = _load(_ROOM / "compose" / "compose.yaml")
        self.services: Mapping[str, Mapping[str, Any]] = self.compose["services"]
        self.daemons = {name: each for name, each in self.services.items() if name.startswith("daemon-")}

    def test_confined(self) -> None:
        """All but the database run as nobody else does, without rights, and write nowhere but to their homes."""
        for name, service in self.services.items():
            if name != "database":
                self.assertEqual(service["user"], f"{_USER}:{_USER}", name)
                self.assertIs(service["read_only"], True)
                self.assertEqual(service["cap_drop"], ["ALL"])
                self.assertIn("no-new-privileges:true", service["security_opt"])
            self.assertNotIn("PASSWORD", {key for key in service.get("environment", {}) if not key.endswith("_FILE")})
        self.assertEqual([name for name, each in self.services.items() if "ports" in each], ["balancer"])

    def test_daemons(self) -> None:
        """Each has a home and a door of its own, this version, and the time to end what it has begun."""
        homes = [each["volumes"] for each in self.daemons.values()]
        self.assertEqual(len({str(home) for home in homes}), len(self.daemons))
        for name, daemon in self.daemons.items():
            self.assertEqual(daemon["image"], f"aileron:{__version__}")
            door = self.services[name.replace("daemon", "door")]
            self.assertEqual(door["network_mode"], f"service:{name}")
            for each in (daemon, door):
                self.assertGreater(int(each["stop_grace_period"].removesuffix("s")), _longest())

    def test_files(self) -> None:
        """Every secret, volume and network that is used is declared, and each file that is mounted is there."""
        for kind in ("secrets", "networks"):
            used = {each for service in self.services.values() for each in service.get(kind, ())}
            self.assertEqual(used, set(self.compose[kind]))
        for service in self.services.values():
            for volume in service.get("volumes", ()):
                source = volume.partition(":")[0]
                if source.startswith("."):
                    self.assertTrue((_ROOM / "compose" / source).is_file(), source)
                else:
                    self.assertIn(source, self.compose["volumes"])

    def test_balancer(self) -> None:
        """It knows every daemon, checks who it is, and sends nothing twice that may change something."""
        text = (_ROOM / "compose" / "balancer.conf").read_text(encoding="utf-8")
        servers = re.findall(r"^ +server ([\w-]+):8443 ", text, re.MULTILINE)
        self.assertEqual(servers, list(self.daemons))
        self.assertIn("proxy_ssl_verify on;", text)
        lines = [line for line in text.splitlines() if "proxy_next_upstream" in line and not line.startswith("#")]
        self.assertEqual(len(lines), 1)
        self.assertNotIn("non_idempotent", lines[0])


class ChartTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.values = _load(_CHART / "values.yaml")
        self.resources = list(render())
        (self.set,) = (each for each in self.resources if each["kind"] == "StatefulSet")
        self.pod = self.set["spec"]["template"]["spec"]
        self.containers = {each["name"]: each for each in (*self.pod["initContainers"], *self.pod["containers"])}

    def test_kinds(self) -> None:
        """What belongs to it is there, and each selects the pods by the label that they have."""
        kinds = sorted(each["kind"] for each in self.resources)
        wanted = "ConfigMap NetworkPolicy PodDisruptionBudget Service Service ServiceAccount StatefulSet".split()
        self.assertEqual(kinds, wanted)
        label = {"app": "one"}
        self.assertEqual(self.set["spec"]["template"]["metadata"]["labels"], label)
        for each in self.resources:
            spec = each.get("spec", {})
            selector = spec.get("selector") or spec.get("podSelector") or label
            self.assertEqual(selector.get("matchLabels", selector), label, each["kind"])

    def test_version(self) -> None:
        """It runs this version."""
        self.assertEqual(_load(_CHART / "Chart.yaml")["appVersion"], __version__)
        self.assertEqual(self.containers["daemon"]["image"], f"aileron:{__version__}")

    def test_confined(self) -> None:
        """Nothing runs as root, has rights, or writes to its image."""
        self.assertEqual(self.pod["securityContext"]["runAsUser"], _USER)
        self.assertIs(self.pod["securityContext"]["runAsNonRoot"], True)
        self.assertIs(self.pod["automountServiceAccountToken"], False)
        for name, container in self.containers.items():
            context = container["securityContext"]
            self.assertIs(context["readOnlyRootFilesystem"], True, name)
            self.assertIs(context["allowPrivilegeEscalation"], False)
            self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            self.assertLessEqual(mounted, {each["name"] for each in self.pod["volumes"]} | {"home"})

    def test_door(self) -> None:
        """The door is ready when the daemon is, by a path that there is, and ends after it."""
        door = self.containers["door"]
        self.assertEqual(door["restartPolicy"], "Always")
        probe = door["readinessProbe"]["httpGet"]
        self.assertIn(probe["path"], _PATHS)
        self.assertEqual(probe["path"], "/v1/ready")
        self.assertIn(probe["port"], {each["name"] for each in door["ports"]})
        (config,) = (each for each in self.resources if each["kind"] == "ConfigMap")
        text = config["data"]["nginx.conf"]
        self.assertIn(f"listen {door['ports'][0]['containerPort']} ssl;", text)
        self.assertIn(f"proxy_pass http://127.0.0.1:{self.values['agentPort']};", text)

    def test_ends(self) -> None:
        """A pod has the time to end what it has begun, and long enough for the probe to be asked."""
        settings = StoreSettings(
            daemons="several", drain_seconds=self.values["drainSeconds"], notice_seconds=self.values["noticeSeconds"]
        )
        self.assertGreater(self.pod["terminationGracePeriodSeconds"], longest_stop(settings) or 0.0)
        probe = self.containers["door"]["readinessProbe"]
        self.assertGreater(self.values["noticeSeconds"], probe["periodSeconds"] * probe["failureThreshold"])

    def test_network(self) -> None:
        """Only agents reach the door, and nothing else of the pod."""
        (policy,) = (each for each in self.resources if each["kind"] == "NetworkPolicy")
        (ingress,) = policy["spec"]["ingress"]
        self.assertEqual(ingress["ports"], [{"port": 8443}])
        self.assertEqual(policy["spec"]["policyTypes"], ["Ingress", "Egress"])


class ImageTests(SynchronousTestCase):
    def test_driver(self) -> None:
        """The image has the driver of the database, and runs as the user that both topologies name."""
        text = (_ROOM / "Containerfile").read_text(encoding="utf-8")
        self.assertIn("postgresql", re.findall(r"\[([a-z,-]+)\]\"", text)[0].split(","))
        self.assertIn(f"--uid {_USER} ", text)


def _longest() -> float:
    return longest_stop(StoreSettings(daemons="several")) or 0.0

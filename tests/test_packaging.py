"""What is packed is what there is."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from fnmatch import fnmatch
from pathlib import Path

import click
from twisted.application.service import IServiceMaker, ServiceMaker
from twisted.plugin import getPlugins
from twisted.python.reflect import namedAny
from twisted.trial.unittest import SynchronousTestCase

from aileron import __version__
from aileron.cli._main import aileron
from aileron.features.service.commands import systemd_service
from aileron.home.paths import Home
from tests.manual import PAGES, SCRIPTS, find_unbreakable
from tests.rules import read_tree

_ROOT = Path(__file__).resolve().parent.parent
_PROJECT_OF_MODULE = {
    "graphql": "graphql-core",
    "jwt": "pyjwt",
    "prometheus_client": "prometheus-client",
    "google": "protobuf",
    "opentelemetry": "opentelemetry-proto",
    "re2": "google-re2",
    "ulid": "python-ulid",
    "yaml": "pyyaml",
    "zope": "zope.interface",
}
_BUILT_ON = {"klein", "mcp", "twisted", "zope.interface"}


def _setup() -> ConfigParser:
    setup = ConfigParser(interpolation=None)
    setup.read(_ROOT / "setup.cfg", encoding="utf-8")
    return setup


def _lines(value: str) -> list[str]:
    return [line.strip() for line in value.splitlines() if line.strip() and not line.startswith("#")]


def _projects(requirements: str) -> set[str]:
    """Name the projects of a list of requirements, in lower case, without extras and bounds."""
    return {re.split(r"[\[<>=]", line)[0].lower() for line in _lines(requirements)}


def _imported(package: str) -> set[str]:
    """Name the projects that a package of ours imports, the standard library apart."""
    tops = {found.module.split(".")[0] for source in read_tree(_ROOT, package) for found in source.imports}
    outside = tops - sys.stdlib_module_names - {"aileron", "tests", "bench"}
    return {_PROJECT_OF_MODULE.get(top, top) for top in outside}


def _data_files() -> Iterator[Path]:
    """Yield the files of the package that are no modules, caches of tools apart."""
    for path in sorted((_ROOT / "aileron").rglob("*")):
        cached = any(part.startswith((".", "__pycache__")) for part in path.relative_to(_ROOT).parts)
        if path.is_file() and path.suffix != ".py" and not cached:
            yield path


def _declares(patterns: list[str], path: str) -> bool:
    """Tell whether a package's patterns cover a file; ``**`` stands for one directory at least."""
    return any(fnmatch(path, each) and ("**" in each or path.count("/") == each.count("/")) for each in patterns)


class PackagingTests(SynchronousTestCase):
    """setup.cfg against the tree."""

    def setUp(self) -> None:
        self.config = _setup()

    def required(self) -> set[str]:
        """Name what the package requires, or needs for what one may configure."""
        extras = self.config["options.extras_require"]
        optional = "".join(
            extras[name]
            for name in ("graphql", "notify", "passkey", "phone", "postgresql", "security-key", "ssh", "terminal")
        )
        return _projects(self.config["options"]["install_requires"] + optional)

    def test_packages(self) -> None:
        """The packages listed are those on disk, the plugin's comes last, and no module lies outside of one."""
        found = {".".join(path.parent.relative_to(_ROOT).parts) for path in (_ROOT / "aileron").rglob("__init__.py")}
        listed = _lines(self.config["options"]["packages"])
        self.assertEqual(listed[-1], "twisted.plugins")
        self.assertEqual(set(listed[:-1]), found)
        self.assertEqual(len(listed), len(set(listed)))
        homeless = [path for path in (_ROOT / "aileron").rglob("*.py") if not (path.parent / "__init__.py").exists()]
        self.assertEqual(homeless, [])
        self.assertEqual([str(path) for path in (_ROOT / "twisted").rglob("__init__.py")], [])

    def test_plugin(self) -> None:
        """Twistd finds the daemon by name, and every command names something that can be called."""
        makers = [maker for maker in getPlugins(IServiceMaker) if isinstance(maker, ServiceMaker)]
        self.assertEqual([maker.module for maker in makers if maker.tapname == "aileron"], ["aileron.daemon"])
        for line in _lines(self.config["options.entry_points"]["console_scripts"]):
            module, name = line.split("=")[1].strip().split(":")
            self.assertTrue(callable(namedAny(f"{module}.{name}")), line)

    def test_data_files(self) -> None:
        """Every file that is no module is declared by its package."""
        declared = {name: re.split(r"[,\s]+", value) for name, value in self.config["options.package_data"].items()}
        packages = sorted(_lines(self.config["options"]["packages"]), key=len, reverse=True)
        for path in _data_files():
            dotted = ".".join(path.relative_to(_ROOT).parts)
            package = next(name for name in packages if dotted.startswith(f"{name}."))
            inside = path.relative_to(_ROOT.joinpath(*package.split("."))).as_posix()
            self.assertTrue(_declares(declared.get(package, []), inside), f"{path} is not packed")

    def test_lowest(self) -> None:
        """The lowest dependencies that are tested are the lower bounds that are promised."""
        extras = self.config["options.extras_require"]
        names = ("notify", "passkey", "phone", "postgresql", "security-key", "terminal", "test")
        optional = "".join(extras[name] for name in names)
        promised = self.config["options"]["install_requires"] + optional
        tested = (_ROOT / "requirements" / "lowest.txt").read_text(encoding="utf-8")
        bounds = {re.sub(r"\[\w+\]", "", line).replace(">=", "==") for line in _lines(promised)}
        self.assertEqual(sorted(bounds), sorted(_lines(tested)))

    def test_imported(self) -> None:
        """What is imported is what is required, nothing by chance or in vain, and each has a line that says why."""
        self.assertEqual(_imported("aileron"), self.required())
        extra = _projects(self.config["options.extras_require"]["test"])
        self.assertEqual(_imported("tests") - _imported("aileron") - extra, set())
        page = (_ROOT / "doc" / "adr" / "0001-dependencies.md").read_text(encoding="utf-8")
        decided = {name.lower() for name in re.findall(r"^\| ([\w.-]+) \|", page, re.MULTILINE)} - {"package"}
        self.assertEqual(decided, self.required() - _BUILT_ON)


class PackageTests(SynchronousTestCase):
    """What is in packaging/ against the program."""

    def test_shipped(self) -> None:
        """What a release makes for readers and shells lies where setup.cfg finds it, and is installed there."""
        patterns = {target: pattern.strip() for target, pattern in _setup()["options.data_files"].items()}
        made = [f"share/{place}" for place in (*PAGES, *SCRIPTS.values())]
        self.assertEqual({path.rpartition("/")[0] for path in made}, set(patterns))
        self.assertEqual([path for path in made if not fnmatch(path, patterns[path.rpartition("/")[0]])], [])

    def test_manual(self) -> None:
        """No help text has a word so long that the man page cannot be set without a warning.

        Where groff and mandoc are, ``tox -e doc`` has them judge the pages themselves.
        """
        self.assertEqual(list(find_unbreakable(aileron, "aileron")), [])
        word = "github://OWNER/REPO[/PATH][@VERSION]," * 2
        for text, found in (
            (f"Representation {word[:60]} and more", ["Representation"]),
            (f"Some more words {word[:65]} and more", [word[:65]]),
            (f"It is in a {word[:50]} and more", []),
            (f"At the end is {word[:60]}", []),
        ):
            option = click.Option(["--from"], help=text)
            group = click.Group("x", commands=[click.Command("y", params=[option])])
            self.assertEqual(list(find_unbreakable(group, "x")), [f"x y --from: {line}" for line in found], text)

    def test_changelog(self) -> None:
        """The Debian package's newest entry is for the version of the program."""
        first = (_ROOT / "packaging" / "debian" / "changelog").read_text("utf-8").splitlines()[0]
        self.assertTrue(first.startswith(f"aileron ({__version__}-"), first)

    def test_unit(self) -> None:
        """The packaged unit says what C{aileron daemon install} writes, but for the home and the paths of the user."""
        made = systemd_service(Home(Path("/home/me")), {"HOME": "/home/me"}, ["--locked"]).text.decode()
        packed = (_ROOT / "packaging" / "debian" / "aileron.user.service").read_text("utf-8")
        different = ("#", "Documentation=", "Environment=", "ExecStart=", "TimeoutStopSec=")
        said = [[line for line in text.splitlines() if not line.startswith(different)] for text in (made, packed)]
        self.assertEqual(said[0], said[1])
        self.assertIn("ExecStart=/usr/bin/aileron daemon run --locked\n", packed)
        self.assertIn(re.findall("^TimeoutStopSec=.*", made, re.MULTILINE)[0], packed)

    def test_namespace(self) -> None:
        """C{packaging} is no package of ours: it would hide the library of that name."""
        self.assertEqual(list((_ROOT / "packaging").glob("**/__init__.py")), [])

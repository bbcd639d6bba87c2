"""Parses commands in agents' settings that fetch a package and run its program, such as C{npx} and C{uvx}."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from os.path import basename

from attrs import frozen

NPM, PYPI = "npm", "pypi"

_NPM_PACKAGE = re.compile(r"((?:@[a-z0-9~][\w.~-]*/)?[A-Za-z0-9~][\w.~-]*)(?:@([\w.^~*<>=| -]+))?", re.ASCII)
_BEHIND_PROGRAM, _BEHIND_NAME = re.compile(r"[@\[<>=!~]"), re.compile(r"[\[<>=!~]")
_PYPI_PACKAGE = re.compile(
    r"([A-Za-z0-9][\w.-]*(?:\[[\w.,-]+\])?)(?:@(latest|[\w.+!-]+)|((?:[<>=!~]=?|===)[\w.,<>=!~*+ -]+))?", re.ASCII
)
_FETCHERS: Mapping[str, Sequence[str]] = {
    "bunx": (),
    "bun": ("x",),
    "pnpm": ("dlx",),
    "pnpx": (),
    "yarn": ("dlx",),
    "pipx": ("run",),
    "uv": ("run",),
    "deno": ("run",),
}
_CONTAINERS = frozenset(("docker", "podman", "nerdctl"))


@frozen
class PackageRun:
    """A package of a registry, and the program of it that is run.

    :ivar registry: L{NPM} or L{PYPI}.
    :ivar name: the package's name, without a version.
    :ivar wanted: the package and further ones, as specifications for the registry's own installer.
    :ivar program: the name of the program; empty for the package's only program, or the one named like the package.
    :ivar arguments: the program's arguments.
    """

    registry: str
    name: str
    wanted: tuple[str, ...]
    program: str
    arguments: tuple[str, ...]


class NotInstallable(ValueError):
    """Raised if a command fetches its program at start-up in an unsupported way. The text is a sentence."""


def read_package_run(argv: Sequence[str]) -> PackageRun | None:
    """Return the package that a command fetches and runs, or None if the command is not known to fetch one.

    :param argv: the program's name or path, and its arguments.
    :raises NotInstallable: if the command fetches a package in an unsupported way.
    """
    program, arguments = basename(argv[0]), list(argv[1:])
    if program == "npx" or (program == "npm" and arguments[:1] in (["exec"], ["x"])):
        return _read_npx(arguments if program == "npx" else arguments[1:])
    if program == "uvx" or (program == "uv" and arguments[:2] == ["tool", "run"]):
        return _read_uvx(arguments if program == "uvx" else arguments[2:])
    if program in _CONTAINERS:
        raise NotInstallable(f"It runs in a container by {program}, which cannot be started in a sandbox.")
    fetches = _FETCHERS.get(program)
    if fetches is not None and arguments[: len(fetches)] == list(fetches):
        words = " ".join((program, *fetches))
        raise NotInstallable(f"{words} fetches it when it starts. Install it, and name its own program.")
    return None


def _read_npx(arguments: list[str]) -> PackageRun:
    wanted = list[str]()
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option == "--":
            break
        name, equals, value = option.partition("=")
        if name in ("-p", "--package"):
            wanted.append(value if equals else _next(arguments, "npx", option))
        elif option not in ("-y", "--yes", "-q", "--quiet", "--prefer-online", "--prefer-offline"):
            raise NotInstallable(f"It uses the option {name} of npx. Install the package, and name its own program.")
    command = _next(arguments, "npx", "a package")
    name = _npm_name(wanted[0] if wanted else command)
    for each in wanted:
        _npm_name(each)
    return PackageRun(NPM, name, tuple(wanted or (command,)), command if wanted else "", tuple(arguments))


def _npm_name(spec: str) -> str:
    found = _NPM_PACKAGE.fullmatch(spec)
    if found is None:
        raise NotInstallable(f"{spec} is no package of npm's registry. Install it, and name its own program.")
    return found[1]


def _read_uvx(arguments: list[str]) -> PackageRun:
    source, more = "", list[str]()
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        name, equals, value = option.partition("=")
        if name in ("--from", "--with"):
            value = value if equals else _next(arguments, "uvx", option)
            source, more = (value, more) if name == "--from" else (source, [*more, *value.split(",")])
        elif option not in ("-q", "--quiet", "--refresh", "--no-progress", "--isolated"):
            raise NotInstallable(f"It uses the option {name} of uvx. Install the package, and name its own program.")
    command = _next(arguments, "uvx", "a package")
    wanted = [*_pypi_specs((source or command, *more))]
    program = command if source else _BEHIND_PROGRAM.split(command, maxsplit=1)[0]
    name = _BEHIND_NAME.split(wanted[0], maxsplit=1)[0].strip()
    return PackageRun(PYPI, name, tuple(wanted), program, tuple(arguments))


def _pypi_specs(specs: Sequence[str]) -> Iterator[str]:
    for spec in specs:
        found = _PYPI_PACKAGE.fullmatch(spec)
        if found is None:
            raise NotInstallable(f"{spec} is no package of PyPI. Install it, and name its own program.")
        version = found[2] if found[2] != "latest" else None
        yield f"{found[1]}=={version}" if version else f"{found[1]}{found[3] or ''}"


def _next(arguments: list[str], program: str, what: str) -> str:
    if not arguments:
        raise NotInstallable(f"{program} lacks {what} here.")
    return arguments.pop(0)

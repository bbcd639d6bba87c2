"""The files of a sandbox from which tools read logins: stored ones are hidden, and npm gets one with its placeholder.

Which tool has which files is fixed here. A connector file can name no path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os.path import isdir, isfile, join, realpath
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import field, frozen

NPMRC = "/tmp/aileron-npmrc"  # noqa: S108  # the sandbox has its own /tmp
"""The file in the sandbox from which npm reads its settings and its placeholder."""

_NPM_TOKEN = "NPM_TOKEN"
_NPM_PLACES = ("NPM_CONFIG_USERCONFIG", "npm_config_userconfig")
_NPM_SETTING = re.compile(
    r"(?:registry|@[a-z0-9][a-z0-9._-]{0,200}:registry|access|tag|audit|fund|loglevel|engine-strict|ignore-scripts"
    r"|legacy-peer-deps|strict-peer-deps|package-lock|save-exact|save-prefix|sign-git-tag|update-notifier|workspaces)"
)
_MOST_SETTINGS_BYTES = 64 * 1024


@frozen
class LoginFiles:
    """The files from which tools in a sandbox read logins.

    :ivar mounts: the paths outside of the sandbox, by the paths inside at which they are mounted read-only.
    :ivar variables: the environment variables that name them.
    """

    mounts: Mapping[str, str] = field(factory=dict)
    variables: Mapping[str, str] = field(factory=dict)

    @property
    def variables_outside(self) -> Mapping[str, str]:
        """The variables for programs outside of a sandbox, where nothing is mounted."""
        return {name: self.mounts.get(path, path) for name, path in self.variables.items()}


@contextmanager
def lay_out_logins(
    placeholders: Mapping[str, str], hosts: Collection[str], environment: Mapping[str, str]
) -> Iterator[LoginFiles]:
    """Provide an empty file in place of each stored login, and npm's file if npm gets a placeholder.

    :param placeholders: the placeholders by the variables that have them.
    :param hosts: the hosts of the services, with their ports unless these are 443.
    :param environment: the user's environment.
    """
    with TemporaryDirectory(prefix="aileron-logins-") as place:
        empty, npmrc = Path(place, "empty"), Path(place, "npmrc")
        empty.touch(0o600)  # glab requires this mode
        mounts = dict.fromkeys(find_logins(placeholders, environment), str(empty))
        variables = dict[str, str]()
        if _NPM_TOKEN in placeholders:
            theirs = _find_existing(_list_npm_files(environment))
            npmrc.write_text(write_npmrc(placeholders[_NPM_TOKEN], hosts, map(_read_settings, theirs)), "utf-8")
            mounts |= dict.fromkeys((NPMRC, *theirs), str(npmrc))
            variables = {name: NPMRC for name in _NPM_PLACES if name == _NPM_PLACES[0] or environment.get(name)}
        yield LoginFiles(mounts, variables)


def write_npmrc(placeholder: str, hosts: Iterable[str], theirs: Iterable[str]) -> str:
    """Return the text of npm's file of settings, with a placeholder for each host.

    :param theirs: the texts of the user's own files. Harmless settings are taken over, such as the registry of a scope.
    """
    kept = [line for text in theirs for line in _keep_settings(text)]
    return "".join(f"{line}\n" for line in (*kept, *(f"//{host}/:_authToken={placeholder}" for host in sorted(hosts))))


def _keep_settings(text: str) -> Iterator[str]:
    for line in text.splitlines():
        name, equals, value = (each.strip() for each in line.partition("="))
        # guard of own tools: no login of the user's settings of npm enters the sandbox
        #    -> features.own_tools.test_logins.NpmTests.test_settings, instead if equals
        if equals and _NPM_SETTING.fullmatch(name) and "@" not in value and "$" not in value:
            yield f"{name}={value}"


def find_logins(variables: Collection[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the existing files with stored logins, as paths with links resolved, except npm's.

    :param variables: the variables that have placeholders.
    """
    for names, list_files in _STORED.items():
        if not names.isdisjoint(variables):
            # guard of own tools: a login is hidden also where its tool does not look at present
            #    -> features.own_tools.test_logins.LoginTests.test_all_places,
            #    instead yield from _find_existing(list(list_files(environment))[:1])
            yield from _find_existing(list_files(environment))


def _find_existing(paths: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(realpath(path) for path in paths if isfile(path)))


def _list_gh_files(environment: Mapping[str, str]) -> Iterator[str]:
    return _list_files("GH_CONFIG_DIR", "gh", "hosts.yml", environment)


def _list_glab_files(environment: Mapping[str, str]) -> Iterator[str]:
    return _list_files("GLAB_CONFIG_DIR", "glab-cli", "config.yml", environment)


def _list_files(variable: str, directory: str, name: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the files in which a tool may have stored logins: those that its variables name, and the usual one.

    :param variable: the variable that names the directory of the tool's settings.
    :param directory: the name of that directory among the user's settings.
    """
    if environment.get(variable):
        yield join(environment[variable], name)
    if environment.get("XDG_CONFIG_HOME"):
        yield join(environment["XDG_CONFIG_HOME"], directory, name)
    yield join(_home(environment), ".config", directory, name)


def _list_cargo_files(environment: Mapping[str, str]) -> Iterator[str]:
    for place in (environment.get("CARGO_HOME", ""), join(_home(environment), ".cargo")):
        yield from (join(place, name) for name in ("credentials.toml", "credentials") if place)


def _list_aws_files(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the files in which C{aws} may have stored keys or tokens. The settings file counts only if it has a key."""
    home = join(_home(environment), ".aws")
    yield from (environment.get("AWS_SHARED_CREDENTIALS_FILE", ""), join(home, "credentials"))
    for path in (environment.get("AWS_CONFIG_FILE", ""), join(home, "config")):
        if "aws_secret_access_key" in _read_settings(path).lower():
            yield path
    for cache in (join(home, tool, "cache") for tool in ("cli", "sso", "login")):
        yield from (join(cache, name) for name in sorted(os.listdir(cache) if isdir(cache) else ()))


def _list_twine_files(environment: Mapping[str, str]) -> Iterator[str]:
    yield join(_home(environment), ".pypirc")


def _list_npm_files(environment: Mapping[str, str]) -> Iterator[str]:
    yield from (environment[name] for name in _NPM_PLACES if environment.get(name))
    yield join(_home(environment), ".npmrc")


def _home(environment: Mapping[str, str]) -> str:
    return environment.get("HOME", os.sep)


def _read_settings(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_SETTINGS_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


_STORED: Mapping[frozenset[str], Callable[[Mapping[str, str]], Iterator[str]]] = {
    frozenset(("GH_TOKEN", "GITHUB_TOKEN")): _list_gh_files,
    frozenset(("GITLAB_TOKEN",)): _list_glab_files,
    frozenset(("TWINE_PASSWORD", "UV_PUBLISH_TOKEN")): _list_twine_files,
    frozenset(("CARGO_REGISTRY_TOKEN",)): _list_cargo_files,
    frozenset(("AWS_ACCESS_KEY_ID",)): _list_aws_files,
}
"""The files of stored logins, by the variables of which one has a placeholder."""

"""Hides the files in which tools store logins that the placeholders of services replace."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from os.path import isfile, join, realpath
from tempfile import NamedTemporaryFile

_GH_VARIABLES = frozenset(("GH_TOKEN", "GITHUB_TOKEN"))


@contextmanager
def hide_logins(variables: Collection[str], environment: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Provide an empty file by the path of each stored login, within the context.

    :param variables: the variables that have placeholders.
    :param environment: the user's environment.
    """
    with NamedTemporaryFile(prefix="aileron-empty-") as empty:
        yield dict.fromkeys(find_logins(variables, environment), empty.name)


def find_logins(variables: Collection[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the files of stored logins that exist, as paths without links."""
    if not _GH_VARIABLES.isdisjoint(variables):
        # guard of own tools: a login is hidden also where gh does not look at present
        #    -> features.own_tools.test_logins.LoginTests.test_all_places,
        #    instead places = list(_list_gh_places(environment))[:1]
        places = list(_list_gh_places(environment))
        paths = (join(place, "hosts.yml") for place in places)
        yield from dict.fromkeys(realpath(path) for path in paths if isfile(path))


def _list_gh_places(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the directories in which C{gh} may have stored logins: those of its variables, and the usual one."""
    if environment.get("GH_CONFIG_DIR"):
        yield environment["GH_CONFIG_DIR"]
    if environment.get("XDG_CONFIG_HOME"):
        yield join(environment["XDG_CONFIG_HOME"], "gh")
    yield join(environment.get("HOME", os.sep), ".config", "gh")

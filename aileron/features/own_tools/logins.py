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
        settings = environment.get("XDG_CONFIG_HOME") or join(environment.get("HOME", os.sep), ".config")
        path = join(environment.get("GH_CONFIG_DIR") or join(settings, "gh"), "hosts.yml")
        if isfile(path):
            yield realpath(path)

"""The composition root of the daemon: the only package that builds its objects and connects them.

Run by C{twistd aileron}, or in the foreground by L{serve}.
"""

from aileron.base.yaml_keys import describe_keys

from ._config import config_keys, read_switches
from ._config_file import HomeActionFiles, config_problem
from ._process import fresh_ids, settle_heap
from ._run import choose_reactor, live, makeService, serve
from ._settings import DaemonSettings, Options
from ._store import find_server

__all__ = [
    "DaemonSettings",
    "HomeActionFiles",
    "Options",
    "choose_reactor",
    "config_keys",
    "config_problem",
    "describe_keys",
    "find_server",
    "fresh_ids",
    "live",
    "makeService",
    "read_switches",
    "serve",
    "settle_heap",
]

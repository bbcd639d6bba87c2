"""Finds the enabled features and the kinds of connector, for commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aileron.features import FeatureSet
from aileron.home.discovery import live_discovery
from aileron.home.paths import Home
from aileron.home.private_files import read_private
from aileron.model.errors import AileronError

if TYPE_CHECKING:
    from aileron.connectors import KindTable


def find_features(home: Home) -> FeatureSet:
    """Return the enabled features: from the running daemon, else from config.yaml, trusted or not.

    If neither can be read, all built-in features are enabled.
    """
    try:
        found = live_discovery(home)
        if found is not None:
            return FeatureSet().without(*found.features_off)
        data = read_private(home.config)
    except AileronError:
        return FeatureSet()
    return FeatureSet() if data is None else _read(data)


def find_kinds(home: Home) -> KindTable:
    """Return the running daemon's kinds of connector. Without a daemon, return the built-in ones.

    Only the daemon knows whether config.yaml, which names foreign packages, is trusted.
    """
    from aileron.connectors import load_kinds

    try:
        found = live_discovery(home)
    except AileronError:
        found = None
    return load_kinds(() if found is None else found.connector_packages).kinds


def _read(data: bytes) -> FeatureSet:
    from aileron.base.yaml_keys import NotConfig
    from aileron.daemon import read_switches

    try:
        return FeatureSet(switches=read_switches(data.decode("utf-8", "replace")))
    except NotConfig:
        return FeatureSet()

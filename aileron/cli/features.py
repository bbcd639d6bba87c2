"""Finds which features are on, and which kinds of connector there are, for commands."""

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
    """Return the features that are on: as the running daemon says, else as config.yaml does, trusted or not."""
    try:
        found = live_discovery(home)
        if found is not None:
            return FeatureSet().without(*found.features_off)
        data = read_private(home.config)
    except AileronError:
        return FeatureSet()
    return FeatureSet() if data is None else _read(data)


def find_kinds(home: Home) -> KindTable:
    """Return the kinds of connector that the running daemon knows; without a daemon, those that ship with Aileron.

    Only the daemon can tell whether config.yaml, which names the packages of others, is trusted.
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

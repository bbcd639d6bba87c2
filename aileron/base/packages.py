"""Finds installed Python packages, and imports none that is in the working directory."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType


def find_package(name: str) -> ModuleType | None:
    """Import a package, or return None if there is none or it is in the working directory."""
    try:
        top = find_spec(name.partition(".")[0])
        if top is None or any(_in_working_directory(each) for each in top.submodule_search_locations or [""]):
            return None
        package = import_module(name)
    except (ImportError, ValueError):
        return None
    return package if hasattr(package, "__path__") else None


def _in_working_directory(location: str) -> bool:
    return Path(location).resolve().is_relative_to(Path(os.getcwd()).resolve())

"""Action files: parsed, validated, interpolated, offered as JSON Schema, kept in a catalogue."""

from ._arguments import check_arguments
from ._check import check
from ._directory import DirectoryCatalogue
from ._faults import ManifestFault
from ._json_schema import input_schema
from ._parse import parse
from ._paths import look_up
from ._resolve import Known, preview_paths, resolve, resolve_preview, uses_outputs
from ._tool_names import tool_name

__all__ = [
    "DirectoryCatalogue",
    "Known",
    "ManifestFault",
    "check",
    "check_arguments",
    "input_schema",
    "look_up",
    "parse",
    "preview_paths",
    "resolve",
    "resolve_preview",
    "tool_name",
    "uses_outputs",
]

"""Action files: parsed, validated, interpolated, offered as JSON Schema, kept in a catalogue."""

from ._arguments import check_arguments
from ._check import check
from ._directory import DirectoryCatalogue
from ._faults import ManifestFault
from ._json_schema import input_schema
from ._parse import parse, tool_name
from ._resolve import resolve, uses_outputs

__all__ = [
    "DirectoryCatalogue",
    "ManifestFault",
    "check",
    "check_arguments",
    "input_schema",
    "parse",
    "resolve",
    "tool_name",
    "uses_outputs",
]

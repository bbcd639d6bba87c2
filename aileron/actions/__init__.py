"""Action files: parses, validates and interpolates them, offers them as JSON Schema, and catalogues them."""

from ._arguments import check_arguments
from ._directory import DirectoryCatalogue, read_actions
from ._inputs import MAX_CHOICES, MAX_INPUTS, MAX_LENGTH
from ._own_schema import input_schema_problem
from ._parse import MAX_FILE_BYTES, ManifestFault, check, parse
from ._references import look_up
from ._resolve import KnownValues, inputs_given, preview_paths, resolve, resolve_inverse, resolve_preview, uses_outputs
from ._tool import input_schema, tool_name

__all__ = [
    "MAX_CHOICES",
    "MAX_FILE_BYTES",
    "MAX_INPUTS",
    "MAX_LENGTH",
    "DirectoryCatalogue",
    "KnownValues",
    "ManifestFault",
    "check",
    "check_arguments",
    "input_schema",
    "input_schema_problem",
    "inputs_given",
    "look_up",
    "parse",
    "preview_paths",
    "read_actions",
    "resolve",
    "resolve_inverse",
    "resolve_preview",
    "tool_name",
    "uses_outputs",
]

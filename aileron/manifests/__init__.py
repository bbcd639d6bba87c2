"""Action files: parsed, validated, interpolated, offered as JSON Schema, followed live."""

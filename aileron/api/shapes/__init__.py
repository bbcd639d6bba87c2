"""The forms of input and output: JSON, JSON Schema, OpenAPI and Prometheus' text format."""

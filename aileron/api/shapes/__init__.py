"""The shapes of what goes in and out, as JSON, JSON Schema, OpenAPI and Prometheus' text."""

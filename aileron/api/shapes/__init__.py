"""The forms of requests and responses: JSON, JSON Schema, OpenAPI and Prometheus' text format."""

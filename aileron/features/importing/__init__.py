"""Imports descriptions of APIs (OpenAPI, GraphQL, AWS, Discovery, curl, MCP) as connector and action files."""

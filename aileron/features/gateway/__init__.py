"""The LLM gateway: relays requests of agents to their providers, byte for byte."""

"""The LLM gateway: carries what an agent and its provider say to each other, as the bytes that it is."""

"""The offer to a client: actions as tools, how the others are found, documents, prompts, pages."""

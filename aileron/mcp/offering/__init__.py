"""The offer to a client: actions as tools, search for the others, documents, prompts, pages."""

"""The offer to a client: actions as tools, search for unlisted actions, documents and prompts."""

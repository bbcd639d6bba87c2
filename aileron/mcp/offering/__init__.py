"""What a client is offered: which actions as tools, how the others are found, documents, prompts, pages."""

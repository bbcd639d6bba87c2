"""The ground, which knows nothing of Aileron: addresses, HTTP, JSON, text, files, waiting."""

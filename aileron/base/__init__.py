"""Code that is independent of Aileron: addresses, HTTP, JSON, text, files, waiting."""

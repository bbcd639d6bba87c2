"""Commands for clients of Aileron's tools that nobody launches."""

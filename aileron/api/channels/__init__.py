"""The sites' channels: each request judged by its head, its body counted, its peer known."""

"""The sites' channels: they check the head of each request, limit its body, and identify the connecting process."""

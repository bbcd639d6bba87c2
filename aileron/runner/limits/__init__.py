"""Keeps runs from beginning: pauses, caps, earlier denials and loops."""

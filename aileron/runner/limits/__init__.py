"""What keeps a run from beginning: pauses, limits, earlier denials and loops."""

"""Waiting for a decision within the limits of the calling client: how long, with what progress, and how it ends."""

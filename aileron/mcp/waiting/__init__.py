"""Waiting for a decision within the limits of the calling client, with progress reports, forms and cancellations."""

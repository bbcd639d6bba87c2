"""Setup: from an empty home to an action that an agent can request."""

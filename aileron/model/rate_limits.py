"""Rate limits of services: until when a service asked for no further requests."""

from __future__ import annotations

from attrs import frozen

MOST_HELD_SECONDS = 3600.0
"""The longest time for which a rate limit applies, so that a service cannot delay runs for ever."""


@frozen
class RateLimit:
    """A rate limit of one account at a service.

    :ivar account: the connector and the credential.
    :ivar of_preview: whether the response to a preview set the limit. An agent can cause previews without approval.
    """

    account: tuple[str, str | None]
    of_preview: bool

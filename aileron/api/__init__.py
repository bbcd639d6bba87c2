"""The daemon's HTTP contract: two sites behind one guard, with one envelope for every error.

L{agent_site} and L{operator_site} make the resources from L{Dependencies}; L{GuardedSite} serves each of them behind
L{Channel}s that enforce L{SiteRules}.
"""

from ._logins import OperatorLogins
from ._sessions import CHECK_SECONDS
from ._sites import API_PATHS, HANDOVER, agent_site, chosen_site, operator_site
from .channels.channel import Channel
from .channels.checks import MAX_BODY_BYTES, OtherNames, SiteRules
from .channels.peer import peer_uid, peer_uid_lookup
from .channels.site import GuardedSite
from .dependencies import Dependencies
from .faults import HEADERS, Answer, answer, encode, failure
from .guard import (
    INSTANCE,
    POLL,
    PROOF,
    Who,
    browser_session,
    by_passkey,
    keep_place,
    login_payload,
    signed_request,
)
from .routes.scopes import current_target, needed_scopes
from .routes.sessions import COMMAND_SESSION
from .serving import notes_of_request, read_body, unexpected, write
from .tokens import AGENT_TOKEN, LAUNCH_KEY, LOCAL_KEY, mint, token_digest

__all__ = [
    "AGENT_TOKEN",
    "API_PATHS",
    "CHECK_SECONDS",
    "COMMAND_SESSION",
    "HANDOVER",
    "HEADERS",
    "INSTANCE",
    "LAUNCH_KEY",
    "LOCAL_KEY",
    "MAX_BODY_BYTES",
    "POLL",
    "PROOF",
    "Answer",
    "Channel",
    "Dependencies",
    "GuardedSite",
    "OperatorLogins",
    "OtherNames",
    "SiteRules",
    "Who",
    "agent_site",
    "answer",
    "browser_session",
    "by_passkey",
    "chosen_site",
    "current_target",
    "encode",
    "failure",
    "keep_place",
    "login_payload",
    "mint",
    "needed_scopes",
    "notes_of_request",
    "operator_site",
    "peer_uid",
    "peer_uid_lookup",
    "read_body",
    "signed_request",
    "token_digest",
    "unexpected",
    "write",
]

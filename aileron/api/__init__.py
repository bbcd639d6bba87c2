"""The daemon's HTTP contract: two sites behind one guard, with one envelope for every error.

L{agent_site} and L{operator_site} make the resources from L{Dependencies}; L{GuardedSite} serves each of them behind
L{Channel}s that enforce L{SiteRules}.
"""

from ._sessions import LOOK_SECONDS
from ._sites import API_PATHS, HANDOVER, agent_site, operator_site
from .channels.channel import Channel
from .channels.checks import MAX_BODY_BYTES, OtherNames, SiteRules
from .channels.peer import peer_uid, peer_uid_lookup
from .channels.site import GuardedSite
from .dependencies import Dependencies
from .faults import HEADERS, Answer, answer, encode, failure
from .guard import INSTANCE, POLL, PROOF, Who, browser_session, keep_place, signed_request
from .routes.scopes import current_target, needed_scopes
from .routes.sessions import COMMAND_SESSION
from .serving import read_body, unexpected, write
from .tokens import AGENT_TOKEN, LAUNCH_KEY, LOCAL_KEY, mint, token_digest

__all__ = [
    "AGENT_TOKEN",
    "API_PATHS",
    "COMMAND_SESSION",
    "HANDOVER",
    "HEADERS",
    "INSTANCE",
    "LAUNCH_KEY",
    "LOCAL_KEY",
    "LOOK_SECONDS",
    "MAX_BODY_BYTES",
    "POLL",
    "PROOF",
    "Answer",
    "Channel",
    "Dependencies",
    "GuardedSite",
    "OtherNames",
    "SiteRules",
    "Who",
    "agent_site",
    "answer",
    "browser_session",
    "current_target",
    "encode",
    "failure",
    "keep_place",
    "mint",
    "needed_scopes",
    "operator_site",
    "peer_uid",
    "peer_uid_lookup",
    "read_body",
    "signed_request",
    "token_digest",
    "unexpected",
    "write",
]

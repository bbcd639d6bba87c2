"""Sessions of agents, who speaks to the daemon, and MCP over HTTP in a session."""

from __future__ import annotations

import base64
import hmac
from datetime import datetime
from enum import StrEnum

from attrs import field, frozen

SANDBOX_ADDRESS = "127.65.76.1"
"""The address from which launchers hand on what comes from inside of sandboxes."""

GATEWAY_KEY, IN_BAND_KEY = "ail_g_", "ail_i_"
"""What the keys of a session for its LLM traffic begin with: as it is, and with actions offered in it."""


def derive_gateway_key(in_band_key: str) -> str:
    """Return the gateway key of the session that has this in-band key; nobody gets from it back to that one.

    So what only knows digests can use the gateway for the holder of the in-band key, and for nobody else.
    """
    derived = hmac.digest(in_band_key.encode("utf-8", "surrogatepass"), b"aileron gateway key", "sha256")
    return GATEWAY_KEY + base64.urlsafe_b64encode(derived).rstrip(b"=").decode("ascii")


@frozen
class Process:
    """A process as the kernel shows it at one moment.

    :ivar executable: path, or L{None}: hidden.
    :ivar working_dir: the same.
    """

    pid: int
    executable: str | None = None
    working_dir: str | None = None


class SessionEnding(StrEnum):
    """Why a session ended, where neither it nor the operator ended it.

    C{ORPHANED}: its launcher was gone.  C{EXPIRED}: it was given no more time.
    """

    ORPHANED = "orphaned"
    EXPIRED = "expired"


@frozen
class SessionTally:
    """The sum of what a session asked for, as far as it is known now.

    :ivar calls: all of it.
    :ivar waiting: what is undecided.
    :ivar approvals: what was approved, by the operator or by a grant of theirs.
    :ivar denials: what was denied.
    :ivar effects: what was done.
    :ivar in_doubt: what may have been done.
    """

    calls: int = 0
    waiting: int = 0
    approvals: int = 0
    denials: int = 0
    effects: int = 0
    in_doubt: int = 0


@frozen
class Session:
    """One run of one agent.

    :ivar agent: the name that the opener claims.
    :ivar working_dir: a claim as well.
    :ivar seen_at: its last request, kept in memory and written now and then.
    :ivar peer: the process that opened it, seen and not claimed; L{None}: it could not be told.
    :ivar leased: whether it ends when its launcher is gone.
    :ivar ends_at: when it ends in any case; L{None}: it has no such time.
    :ivar ending: why it ended; L{None}: it lives, or was ended.
    :ivar in_band: whether it has an in-band key.
    :ivar notes_tools: whether the tools that providers run for it are noted, whatever the configuration says.
    """

    id: str
    agent: str
    working_dir: str
    started_at: datetime
    seen_at: datetime
    ended_at: datetime | None = None
    exit_code: int | None = None
    peer: Process | None = None
    leased: bool = False
    ends_at: datetime | None = None
    ending: SessionEnding | None = None
    in_band: bool = False
    notes_tools: bool = False

    @property
    def live(self) -> bool:
        """True while it has not ended."""
        return self.ended_at is None

    def follows(self, other: Session) -> bool:
        """Tell whether this may be C{other} resumed: a later session of the same agent in the same directory."""
        same = (self.agent, self.working_dir) == (other.agent, other.working_dir) and self.working_dir != ""
        return same and other.started_at <= self.started_at


@frozen
class OperatorSession:
    """One login of the operator; it dies with the daemon.

    :ivar id: public, for the record; never the token.
    :ivar used_at: when it last did something; what a page asks by itself is nothing.
    :ivar expires_at: when it ends unless it is used before.
    :ivar ends_at: when it ends whatever its use.
    """

    id: str
    started_at: datetime
    used_at: datetime
    expires_at: datetime
    ends_at: datetime
    browser: bool = False


@frozen
class SignedRequest:
    """A request of a browser, with what shows that it is that browser who asks.

    :ivar proof: time, nonce and signature, as sent (ADR 17).
    :ivar target: path and query, as sent.
    :ivar body_digest: SHA-256 of the body.
    """

    cookie: str = field(repr=False)
    proof: str = field(repr=False)
    method: str
    target: str
    body_digest: bytes


class HandOverState(StrEnum):
    """The progress of handing a login over to a browser; the last four are ends.

    C{MADE}: no browser came yet.  C{OPENED}: one did, and is nobody until the person has brought its two words.
    C{TWICE}: the code was used twice, so somebody else has it.  C{WRONG}: these were not the words.
    """

    MADE = "made"
    OPENED = "opened"
    CONFIRMED = "confirmed"
    TWICE = "opened_twice"
    WRONG = "wrong_words"
    LATE = "late"


@frozen
class HandOver:
    """The knowledge of the browser that opened a hand-over: this, and nothing else.

    :ivar words: to be typed in the terminal; empty where no words are waited for.
    """

    state: HandOverState
    words: str = field(default="", repr=False)

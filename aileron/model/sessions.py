"""Sessions of agents, logins of the operator, and the processes that connect to the daemon."""

from __future__ import annotations

import base64
import hmac
from datetime import datetime
from enum import StrEnum

from attrs import Factory, field, frozen

SANDBOX_ADDRESS = "127.65.76.1"
"""The address from which launchers forward connections from sandboxes."""

GATEWAY_KEY, IN_BAND_KEY = "ail_g_", "ail_i_"
"""The prefixes of a session's keys for its LLM traffic: without in-band mode, and with it."""


def derive_gateway_key(in_band_key: str) -> str:
    """Return the gateway key of the session that has this in-band key. The in-band key cannot be derived from it.

    Code that stores only digests can therefore use the gateway for the holder of the in-band key only.
    """
    derived = hmac.digest(in_band_key.encode("utf-8", "surrogatepass"), b"aileron gateway key", "sha256")
    return GATEWAY_KEY + base64.urlsafe_b64encode(derived).rstrip(b"=").decode("ascii")


@frozen
class Process:
    """A process as the kernel shows it at one moment.

    :ivar executable: the path of the executable, or None if it is hidden.
    :ivar working_dir: the working directory, or None if it is hidden.
    """

    pid: int
    executable: str | None = None
    working_dir: str | None = None


class SessionEnding(StrEnum):
    """The reason why a session ended, if neither the session nor the operator ended it.

    C{ORPHANED}: its launcher was gone.  C{EXPIRED}: its time was over.
    """

    ORPHANED = "orphaned"
    EXPIRED = "expired"


@frozen
class SessionTally:
    """The counts of a session's calls at this moment.

    :ivar calls: the number of calls.
    :ivar waiting: the number of undecided calls.
    :ivar approvals: the number of calls approved by the operator or by a grant.
    :ivar denials: the number of denied calls.
    :ivar effects: the number of completed calls with an effect.
    :ivar in_doubt: the number of calls whose outcome is unknown.
    """

    calls: int = 0
    waiting: int = 0
    approvals: int = 0
    denials: int = 0
    effects: int = 0
    in_doubt: int = 0


@frozen
class Session:
    """A session: one run of one agent.

    :ivar agent: the agent's name, as claimed when the session was opened.
    :ivar working_dir: the working directory, as claimed when the session was opened.
    :ivar seen_at: the time of its last request, kept in memory and stored periodically.
    :ivar peer: the process that opened it, as seen by the kernel, or None if that is unknown.
    :ivar leased: True if it ends when its launcher exits.
    :ivar ends_at: the latest end, or None.
    :ivar ending: why it ended, or None if it is live or was ended on request.
    :ivar in_band: True if it has an in-band key.
    :ivar notes_tools: True if its providers' tools are recorded regardless of the configuration.
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
        """True while the session has not ended."""
        return self.ended_at is None

    def follows(self, other: Session) -> bool:
        """Return whether this session may resume C{other}: a later session of the same agent in the same directory."""
        same = (self.agent, self.working_dir) == (other.agent, other.working_dir) and self.working_dir != ""
        return same and other.started_at <= self.started_at


@frozen
class OperatorSession:
    """One login of the operator. It ends with the daemon's process.

    A terminal's login ends when it may decide no more. A browser's login then still reads.

    :ivar id: the public id for the record, which is not the token.
    :ivar used_at: the time of its last use. Requests that a page sends by itself do not count.
    :ivar expires_at: when it may decide no more if it is not used before.
    :ivar ends_at: when it may decide no more even if it is used.
    :ivar decides: True while it may decide.
    :ivar proved_at: when the passphrase or the two words were last typed for it.
    """

    id: str
    started_at: datetime
    used_at: datetime
    expires_at: datetime
    ends_at: datetime
    browser: bool = False
    decides: bool = True
    proved_at: datetime = field(default=Factory(lambda self: self.started_at, takes_self=True))


@frozen
class SignedRequest:
    """A browser's request with its proof of identity.

    :ivar proof: the time, nonce and signature, as sent (ADR 17).
    :ivar target: the path and query, as sent.
    :ivar body_digest: the SHA-256 of the body.
    """

    cookie: str = field(repr=False)
    proof: str = field(repr=False)
    method: str
    target: str
    body_digest: bytes


class HandOverState(StrEnum):
    """The progress of handing a login over to a browser. The last four states are final.

    C{MADE}: no browser has opened the code.  C{OPENED}: a browser has, and waits until the person confirms its two
    words.
    C{TWICE}: the code was used twice, so another person has it.  C{WRONG}: the words were wrong.
    """

    MADE = "made"
    OPENED = "opened"
    CONFIRMED = "confirmed"
    TWICE = "opened_twice"
    WRONG = "wrong_words"
    LATE = "late"


@frozen
class HandOver:
    """The state of a hand-over as its browser may see it.

    :ivar words: the words to type in the terminal, or empty if none are needed.
    :ivar cookie: the cookie of the login that was confirmed, or empty: none was, or the browser's present login decides
        again.
    """

    state: HandOverState
    words: str = field(default="", repr=False)
    cookie: str = field(default="", repr=False)

"""Sessions of agents, logins of the operator, and the processes that connect to the daemon."""

from __future__ import annotations

import base64
import hmac
from datetime import datetime
from enum import StrEnum

from attrs import Factory, field, frozen

from aileron.base.converter import OMITTED, differ
from aileron.model.people import AccountLogin, Owner

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

    C{ORPHANED}: the session's launcher is gone. C{EXPIRED}: the session reached its latest end.
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


SELECTOR = r"^(?:(?:tag:)?[a-z0-9*][a-z0-9*._-]*|connector:[A-Za-z0-9*][A-Za-z0-9*._:/@-]*|effect:(?:read|write))$"
"""The pattern of a selector: a name with C{*} for any characters, C{tag:}, C{connector:} or C{effect:}."""


@frozen
class ActionSelection:
    """A choice of actions by selectors. The profiles of sessions define what a selector matches.

    :ivar allow: selectors of which an action must match at least one. If there are none, every action is allowed.
    :ivar deny: selectors of which an action must match none.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@frozen
class Session:
    """A session: one run of one agent.

    :ivar agent: the agent's name, as claimed when the session was opened.
    :ivar working_dir: the working directory, as claimed when the session was opened.
    :ivar seen_at: the time of its last request, kept in memory and stored periodically.
    :ivar peer: the process that opened the session, as seen by the kernel, or None if it is unknown.
    :ivar leased: True if the session ends when its launcher exits.
    :ivar ends_at: when the session ends at the latest, or None for no limit.
    :ivar ending: the reason why the session ended, or None if it is live or was ended on request.
    :ivar in_band: True if the session has an in-band key.
    :ivar notes_tools: True if tools that providers run for the session are recorded regardless of the configuration.
    :ivar profile: the name of the profile that restricts the session's actions, or an empty text for none.
    :ivar selection: the project's own choice of actions, which restricts the session further, or None.
    :ivar owner: the account to which the session belongs, or None for the operator.
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
    profile: str = ""
    selection: ActionSelection | None = None
    owner: Owner | None = None

    @property
    def restricted(self) -> bool:
        """True if the session may not use all actions."""
        return self.profile != "" or self.selection is not None

    @property
    def live(self) -> bool:
        """True while the session has not ended."""
        return self.ended_at is None

    def follows(self, other: Session) -> bool:
        """Return whether this session may resume C{other}.

        It may if both have one owner, one agent and one known working directory, and this session did not start before
        C{other}.
        """
        # guard of roles: an agent reads nothing that another person's agent requested
        #    -> features.people.test_agents.FollowTests.test_owner, instead own, others = None, None
        own, others = self.owner, other.owner
        same = (self.agent, self.working_dir, own) == (other.agent, other.working_dir, others)
        return same and self.working_dir != "" and other.started_at <= self.started_at


@frozen
class OperatorSession:
    """One login of the operator, in a terminal or a browser. It ends with the daemon's process.

    A terminal's login ends when it may no longer decide. A browser's login may then still read.

    :ivar id: the public id for the audit log, which is not the token.
    :ivar used_at: the time of its last use. Requests that a page sends by itself do not count.
    :ivar expires_at: when the login may no longer decide, if it is not used before.
    :ivar ends_at: when the login may no longer decide, even if it is used.
    :ivar decides: True while the login may decide.
    :ivar proved_at: when the passphrase or the two words were last typed for it. A passkey that lets the login decide
        again does not change this time.
    :ivar passkey: the id of the passkey that alone opened it, on the phone's pages, or None.
    :ivar account: the account of the person who opened it at the public name, or None for the operator.
    """

    id: str
    started_at: datetime
    used_at: datetime
    expires_at: datetime
    ends_at: datetime
    browser: bool = False
    decides: bool = True
    proved_at: datetime = field(default=Factory(lambda self: self.started_at, takes_self=True))
    passkey: str | None = None
    account: AccountLogin | None = None

    @property
    def is_public(self) -> bool:
        """True for a login at the public name, which opens nothing at the desk."""
        return self.passkey is not None or self.account is not None


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
    """The state of handing a terminal's login over to a browser by a code. The last four states are final.

    C{MADE}: no browser has opened the code. C{OPENED}: a browser has opened the code, and waits until the person
    confirms its two words. C{TWICE}: the code was used twice, so another person may have it. C{WRONG}: the words were
    wrong.
    """

    MADE = "made"
    OPENED = "opened"
    CONFIRMED = "confirmed"
    TWICE = "opened_twice"
    WRONG = "wrong_words"
    LATE = "late"


@frozen
class SignIn:
    """A browser's request to be logged in by a passkey. The passkey's signature covers C{code} and C{public_key}.

    :ivar login: the id of the terminal's session that started the hand-over.
    :ivar code: the SHA-256 of the code that the browser used, in hexadecimal.
    :ivar public_key: the browser's public key, as L{aileron.base.signatures.write_public_key} writes it.
    """

    login: str
    code: str
    public_key: str


@frozen
class LapsedLogin:
    """A browser's login that may only read, and that a passkey is asked to let decide again.

    The passkey's signature covers both members.

    :ivar login: the id of the login's session.
    :ivar public_key: the browser's public key, as L{aileron.base.signatures.write_public_key} writes it.
    """

    login: str
    public_key: str


@frozen
class HandOver:
    """The state of a login's hand-over by a code, as the browser that used the code may see it.

    :ivar words: the words to type in the terminal, or empty if none are needed.
    :ivar cookie: the cookie of the new login, or empty if there is none yet, or if the browser's present login may
        decide again.
    :ivar adds_passkey: True if the page makes a passkey before its words are typed.
    """

    state: HandOverState
    words: str = field(default="", repr=False)
    cookie: str = field(default="", repr=False)
    adds_passkey: bool = False


@frozen
class NewPasskeyPage:
    """A page that waits for its two words to be typed in the terminal, and may make a passkey before.

    The words log the browser in and add the passkey.

    :ivar login: the id of the terminal's session that started the hand-over.
    """

    login: str
    words: str = field(repr=False)


differ(OperatorSession, account=OMITTED)

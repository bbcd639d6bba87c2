"""The security key as a key source: asks the person at the terminal for its PIN and a touch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any

from attrs import frozen
from zope.interface import implementer

from aileron.base.text import visible
from aileron.cli.context import CliContext, Conversation
from aileron.cli.drive import interruptible
from aileron.cli.errors import CommandError
from aileron.model.errors import InvalidRequest
from aileron.model.interfaces.vault import IKeySource

from .devices import LimitedWait, SecurityKeyError, open_security_key

if TYPE_CHECKING:
    from aileron.model.vault import SecurityKey
    from aileron.vault.keys import EnrolledSecurityKey

    from .authenticator import Authenticator

TOUCH_SECONDS = 30.0
_PIN_TRIES = 3
_SALT_BYTES = 32


class TouchSkipped(Exception):
    """Raised if the person presses Enter or closes the terminal instead of touching the key or typing a PIN."""


class TouchWait(LimitedWait):
    """The wait for one touch. It is set when L{TOUCH_SECONDS} are over, or when the person presses Enter.

    :param seconds: a clock.
    :param answered: returns the line that was typed since the prompt, or None.
    :ivar skipped: whether the person pressed Enter, or the terminal was closed.
    """

    def __init__(self, seconds: Callable[[], float], answered: Callable[[], str | None]) -> None:
        super().__init__(seconds, TOUCH_SECONDS)
        self._answered = answered
        self.skipped = False

    def _is_over(self) -> bool:
        self.skipped = self.skipped or self._is_skipped()
        return self.skipped or super()._is_over()

    def _is_skipped(self) -> bool:
        try:
            return self._answered() is not None
        except InvalidRequest:  # the terminal was closed
            return True


@frozen(eq=False)
class TouchPrompt:
    """A security key and the person at the terminal who touches it.

    :ivar purpose: what the touch is for, such as C{to unlock the vault of /home/you/.aileron}.
    :ivar otherwise: what Enter does instead of a touch, as a sentence.
    """

    authenticator: Authenticator
    terminal: Conversation
    seconds: Callable[[], float]
    purpose: str
    otherwise: str

    def make(self, known: Sequence[EnrolledSecurityKey], salt: bytes) -> tuple[SecurityKey, bytes]:
        """Make a credential, and return it with its secret. Needs two touches, and the PIN if one is set.

        :raises SecurityKeyError: if the security key fails, or is not touched in time.
        :raises TouchSkipped: if the person pressed Enter.
        """
        pin = self._ask_pin()
        token = self._token(pin, making=True)
        made = self._touch(
            lambda wait: self.authenticator.make([each.security_key for each in known], salt, token, wait)
        )
        token = self._token(pin, making=False)
        return made, self._touch(lambda wait: self.authenticator.compute(made, token, wait), "once more ")

    def compute(self, enrolled: Sequence[EnrolledSecurityKey]) -> tuple[EnrolledSecurityKey, bytes]:
        """Return the source whose credential is on the security key, and its secret. Needs a touch.

        The PIN is asked for if no source that needs none is on the security key.

        :raises SecurityKeyError: if none is on it, the security key fails, or it is not touched in time.
        :raises TouchSkipped: if the person pressed Enter.
        """
        token = None
        found = self._find([each for each in enrolled if not each.security_key.verified], None)
        verified = [each for each in enrolled if each.security_key.verified]
        if found is None and verified:
            token = self._token(self._ask_pin(), making=False)
            found = self._find(verified, token)
        if found is None:
            raise SecurityKeyError("This security key is not one that unlocks the vault, or it was reset.")
        chosen = found
        return chosen, self._touch(lambda wait: self.authenticator.compute(chosen.security_key, token, wait))

    def _find(self, enrolled: Sequence[EnrolledSecurityKey], token: bytes | None) -> EnrolledSecurityKey | None:
        return next((each for each in enrolled if self.authenticator.holds(each.security_key, token)), None)

    def _touch(self, work: Callable[[Event], Any], again: str = "") -> Any:
        """Prompt for a touch, and return the result of C{work}, which waits for it."""
        self.terminal.put(f"Touch the security key {again}{self.purpose}. {self.otherwise}\n")
        wait = TouchWait(self.seconds, self.terminal.answered)
        try:
            return work(wait)
        except SecurityKeyError:
            if wait.skipped:
                raise TouchSkipped from None
            raise

    def _ask_pin(self) -> str | None:
        """Return the PIN that the person typed, after the security key took it, or None if it needs none.

        :raises SecurityKeyError: if it takes no PIN now, or all that were typed are wrong.
        :raises TouchSkipped: if the person typed none.
        """
        from .authenticator import UserVerification

        if self.authenticator.verification is not UserVerification.PIN:
            return None
        for _ in range(_PIN_TRIES):
            pin = self.terminal.ask_secret(f"PIN of the security key, {self.purpose}: ")
            if not pin:
                raise TouchSkipped
            if self.authenticator.token_by_pin(pin, making=False) is not None:
                return pin
            left = self.authenticator.pin_tries()
            self.terminal.say(f"Wrong PIN. The security key locks itself after {left} more.\n")
        raise SecurityKeyError("The PIN of the security key is wrong.")

    def _token(self, pin: str | None, *, making: bool) -> bytes | None:
        """Return a token for one touch: by the PIN, or by a fingerprint if the security key reads it by itself.

        Return None if the PIN is wrong or neither is set up.
        """
        from .authenticator import UserVerification

        if pin is not None:
            return self.authenticator.token_by_pin(pin, making=making)
        if self.authenticator.verification is UserVerification.BUILT_IN:
            return bytes(self._touch(lambda wait: self.authenticator.token_by_fingerprint(wait, making=making)))
        return None


@contextmanager
def open_prompt(cli: CliContext, purpose: str, otherwise: str) -> Iterator[TouchPrompt]:
    """Open the security key that is plugged in and the terminal, until the end of the block. Ctrl-C ends a wait.

    For C{purpose} and C{otherwise} see L{TouchPrompt}.

    :raises SecurityKeyError: if there is not exactly one security key, or it cannot be used.
    :raises CommandError: if the library is not installed.
    :raises InvalidRequest: if there is no terminal.
    """
    with cli.terminal() as terminal, open_security_key(cli.security_keys) as device, interruptible():
        from .authenticator import Authenticator

        yield TouchPrompt(Authenticator(device, cli.seconds), terminal, cli.seconds, purpose, otherwise)


@implementer(IKeySource)
@frozen
class SecurityKeySource:
    """The security key that is plugged in, and the person at the terminal of a command.

    :ivar cli: the context of the command.
    """

    cli: CliContext

    def read(self) -> bytes | None:
        from aileron.vault.keys import find_security_keys

        enrolled = find_security_keys(self.cli.home.secrets)
        if not enrolled:
            return None
        # guard of signing: without a terminal that says what it is for, no touch is asked for
        #    -> features.key_sources.test_security_key.UnlockTests.test_no_terminal
        if not self.cli.interactive():
            return None
        purpose = f"to unlock the vault {visible(str(self.cli.home.secrets))}"
        try:
            with open_prompt(self.cli, purpose, "Press Enter to type the passphrase instead.") as prompt:
                found, secret = prompt.compute(enrolled)
        except TouchSkipped:
            return None
        except SecurityKeyError as error:
            raise InvalidRequest(error.message) from None
        except CommandError as error:
            raise InvalidRequest(" ".join(filter(None, (error.message, error.hint)))) from None
        return found.private_key(secret)


def enrol(cli: CliContext, known: Sequence[EnrolledSecurityKey]) -> tuple[SecurityKey, bytes]:
    """Make a credential on the security key that is plugged in, and return it with its secret.

    :param known: the security keys that unlock the vault already.
    :raises CommandError: if there is no terminal, or the security key fails. Nothing was added.
    """
    purpose = f"to add it to the vault {visible(str(cli.home.secrets))}"
    try:
        with open_prompt(cli, purpose, "Press Enter to stop.") as prompt:
            return prompt.make(known, cli.randomness(_SALT_BYTES))
    except TouchSkipped:
        raise CommandError("You stopped. Nothing was added.") from None
    except SecurityKeyError as error:
        raise CommandError(f"{error.message} Nothing was added.") from None
    except CommandError as error:
        raise CommandError(f"{error.message} Nothing was added.", error.hint) from None
    except InvalidRequest:
        raise CommandError("Cannot ask for a touch: no terminal. Nothing was added.") from None

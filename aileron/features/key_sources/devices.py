"""Finds the security key that is plugged in, and explains why it cannot be used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

_DEVICES, _DESCRIPTIONS = Path("/dev"), Path("/sys/class/hidraw")
_FIDO_USAGE_PAGE = b"\x06\xd0\xf1"  # CTAP 2.1, section 11.2.8.2
_MOST_DESCRIPTION_BYTES = 4096
_RETRY = "Plug it in, and try again."


class SecurityKeyError(Exception):
    """Raised if a security key cannot be used.

    :ivar message: a sentence about the reason and the remedy, without secrets.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class LimitedWait(Event):
    """A limit on the wait for a security key: an event that is set when the time is over.

    The library checks the event at each sign of life of the security key, about ten times in a second, and while
    another program uses the key.

    :param seconds: a clock.
    :param length: the length of the wait, in seconds.
    """

    def __init__(self, seconds: Callable[[], float], length: float) -> None:
        super().__init__()
        self._seconds, self._until = seconds, seconds() + length

    def is_set(self) -> bool:
        if self._is_over():
            self.set()
        return super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        return super().wait(timeout) or self.is_set()

    def _is_over(self) -> bool:
        return self._seconds() >= self._until


@contextmanager
def open_security_key(list_devices: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    """Yield the only security key that is plugged in, and close it at the end of the block.

    :param list_devices: opens the security keys, as C{fido2.ctap.CtapDevice}s.
    :raises SecurityKeyError: if there is none, there are several, or it cannot be opened.
    """
    with ExitStack() as stack:
        found = []
        try:
            for each in list_devices():
                stack.callback(each.close)
                found.append(each)
        except OSError as error:
            raise SecurityKeyError(f"The security key cannot be opened: {error.strerror}. {_RETRY}") from None
        if not found:
            raise SecurityKeyError(explain_no_access() or f"No security key is plugged in. {_RETRY}")
        if len(found) > 1:
            raise SecurityKeyError(f"{len(found)} security keys are plugged in. Leave one in, and try again.")
        yield found[0]


def explain_no_access(devices: Path = _DEVICES, descriptions: Path = _DESCRIPTIONS) -> str | None:
    """Explain that a security key is plugged in that this user may not open, or return None if there is none.

    Only Linux describes devices that a user may not open. Elsewhere the result is None.

    :param devices: the directory of the device files.
    :param descriptions: the directory in which Linux describes HID devices (Documentation/hid/hidraw.rst).
    """
    for place in sorted(descriptions.glob("hidraw*")):
        device = devices / place.name
        if _is_security_key(place / "device" / "report_descriptor") and not os.access(device, os.R_OK | os.W_OK):
            return (
                f"A security key is plugged in, but you may not open {device}. Log in at the machine itself, where "
                "udev gives the key to you, or add a udev rule for it: the manual's page Run at login has one."
            )
    return None


def _is_security_key(description: Path) -> bool:
    """Return whether a HID report descriptor names the usage page of FIDO. A device that is gone is none."""
    try:
        with description.open("rb") as file:
            return _FIDO_USAGE_PAGE in file.read(_MOST_DESCRIPTION_BYTES)
    except OSError:
        return False

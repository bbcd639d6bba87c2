"""Which security key is used, and why one cannot be opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.key_sources import devices
from aileron.features.key_sources.devices import SecurityKeyError, explain_no_access, open_security_key

from .software_key import SoftwareKey

_FIDO = bytes.fromhex("06d0f10901a1010920150026ff00750895408102c0")
_KEYBOARD = bytes.fromhex("05010906a101050719e029e7150025017501950881 02c0")


class OpenTests(SynchronousTestCase):
    """The keys that are plugged in."""

    def refused(self, list_keys: Callable[[], Iterable[SoftwareKey]]) -> SecurityKeyError:
        """Return why none was used."""
        with ExitStack() as stack:
            error = self.assertRaises(SecurityKeyError, stack.enter_context, open_security_key(list_keys))
        assert isinstance(error, SecurityKeyError)
        return error

    def test_one(self) -> None:
        """One is used, and closed afterwards, whatever happens."""
        key = SoftwareKey()
        with open_security_key(lambda: [key]) as found:
            self.assertIs(found, key)
            self.assertFalse(key.closed)
        self.assertTrue(key.closed)

    def test_several(self) -> None:
        """Of several none is used, and all are closed."""
        keys = [SoftwareKey(), SoftwareKey()]
        error = self.refused(lambda: keys)
        self.assertIn("2 security keys", error.message)
        self.assertEqual([each.closed for each in keys], [True, True])

    def test_cannot_be_opened(self) -> None:
        """An error of the system is told, and what was opened before is closed."""
        first = SoftwareKey()

        def fail() -> Iterator[SoftwareKey]:
            yield first
            raise PermissionError(13, "Permission denied", "/dev/hidraw0")

        error = self.refused(fail)
        self.assertIn("Permission denied", error.message)
        self.assertTrue(first.closed)

    def test_none(self) -> None:
        """Where none is plugged in, that is told; where one is that nobody may open, that."""
        found: list[str | None] = [None, "may not"]
        self.patch(devices, "explain_no_access", lambda: found[0])
        for told in ("No security key is plugged in", "may not"):
            error = self.refused(list)
            self.assertIn(told, error.message)
            found.pop(0)


class AccessTests(SynchronousTestCase):
    """Devices as Linux describes them."""

    def setUp(self) -> None:
        self.devices, self.described = Path(self.mktemp()), Path(self.mktemp())
        self.devices.mkdir()
        self.described.mkdir()

    def describe(self, name: str, descriptor: bytes) -> None:
        """Have a device that the system describes."""
        (self.described / name / "device").mkdir(parents=True)
        (self.described / name / "device" / "report_descriptor").write_bytes(descriptor)

    def test_access(self) -> None:
        """A security key that this user may not open is told with its path; a keyboard and an open one are not."""
        self.describe("hidraw0", _KEYBOARD)
        (self.described / "hidraw1").mkdir()
        self.assertIsNone(explain_no_access(self.devices, self.described))
        self.describe("hidraw2", _FIDO)
        told = explain_no_access(self.devices, self.described)
        assert told is not None
        self.assertIn(str(self.devices / "hidraw2"), told)
        self.assertIn("udev", told)
        (self.devices / "hidraw2").touch()
        self.assertIsNone(explain_no_access(self.devices, self.described))

    def test_elsewhere(self) -> None:
        """A system that describes no devices tells nothing."""
        self.assertIsNone(explain_no_access(self.devices, self.described / "missing"))

"""Moments as texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import from_timestamp, timestamp
from tests.extent import examples

_ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=_ZONES)  # noqa: DTZ001 - bounds have no zone


class TimestampTests(SynchronousTestCase):
    """L{timestamp} and L{from_timestamp}."""

    @settings(deadline=None, max_examples=examples(100))
    @given(_MOMENTS)
    def test_form(self, moment: datetime) -> None:
        """A moment is written as ISO 8601 says in UTC, whatever its zone, and is read again."""
        text = timestamp(moment)
        self.assertEqual(text, moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"))
        self.assertEqual(from_timestamp(text), moment)

    @settings(deadline=None, max_examples=examples(100))
    @given(_MOMENTS, _MOMENTS)
    def test_order(self, one: datetime, other: datetime) -> None:
        """Texts sort as the moments do."""
        self.assertEqual(timestamp(one) < timestamp(other), one < other)

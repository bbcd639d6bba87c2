"""The page on own tools lists every service that comes with Aileron."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors import read_descriptions

PAGE = Path(__file__).parents[3] / "doc" / "own-tools.md"


class ServicesTests(SynchronousTestCase):
    """The table of services."""

    def test_listed(self) -> None:
        """Each service has a row with its hosts, unless these differ by region, and there is no other row."""
        table = PAGE.read_text("utf-8").partition("\n## Services\n")[2].partition("\n\nEverything else waits")[0]
        rows = {cells[1].strip(" `"): cells[2] for line in table.splitlines()[3:] if (cells := line.split("|"))[1:]}
        declared = {
            each.own_tools.service: each.own_tools.hosts
            for each, _ in read_descriptions(Path("no-such-directory"))
            if each.own_tools is not None
        }
        self.assertEqual(set(rows), set(declared))
        for service, hosts in declared.items():
            for host in () if any("{" in each for each in hosts) else hosts:
                self.assertIn(f"`{host}`", rows[service])

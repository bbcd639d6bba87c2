"""Tests of the table of the gateway's benchmark."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from bench.gateway._table import FIGURES, Figure, Round, Target, lines, ratio, verdict, with_added

_NAMES = ("direct", "ours", "copier", "go", "nginx", "aiohttp")


def _round(ours: float, go: float, nginx: float) -> dict[str, dict[str, float]]:
    return {"ours": {"it": ours}, "go": {"it": go}, "nginx": {"it": nginx}}


class RatioTests(SynchronousTestCase):
    """What is compared was measured in one round."""

    def test_within_rounds(self) -> None:
        """The ratio is the median of the rounds' ratios, of those rounds in which both were measured."""
        rounds = [_round(10, 10, 1), _round(60, 20, 1), _round(20, 5, 1)]
        self.assertEqual(ratio(rounds, "it", "go"), 3)
        self.assertEqual(ratio([{"ours": {"it": 9.0}}, _round(4, 2, 1)], "it", "go"), 2)
        self.assertIsNone(ratio([{"ours": {"it": 1.0}}], "it", "go"))


class AddedTests(SynchronousTestCase):
    """What a contender adds is what is more than without one."""

    def test_added(self) -> None:
        """The time without a proxy is taken off, by median and tail apart; what seems faster adds a microsecond."""
        found = with_added(
            {
                "direct": {"first_p50": 100, "first_p99": 200},
                "go": {"first_p50": 350, "first_p99": 900},
                "ours": {"first_p50": 90, "first_p99": 200},
            },
        )
        self.assertEqual((found["go"]["added_p50"], found["go"]["added_p99"]), (250, 700))
        self.assertEqual((found["ours"]["added_p50"], found["ours"]["added_p99"]), (1, 1))
        self.assertNotIn("added_p50", found["direct"])


class VerdictTests(SynchronousTestCase):
    """Whether a figure holds is said without reading ratios."""

    def test_verdicts(self) -> None:
        """Each bound is held against its own peer, without which nothing is claimed, or stands by itself."""
        both = Figure("it", "it", must=Target("go", 1.5, at_least=True), aim=Target("nginx", 0.5, at_least=True))
        absolute = Figure("it", "it", must=Target(None, 10))
        for figure, measured, said in (
            (both, _round(150, 100, 300), "yes, aim too"),
            (both, _round(150, 100, 301), "yes"),
            (both, _round(149, 100, 1), "NO"),
            (both, {"ours": {"it": 1.0}}, "not compared"),
            (absolute, {"ours": {"it": 10.0}}, "yes"),
            (absolute, {"ours": {"it": 10.1}}, "NO"),
            (Figure("it", "it"), _round(1, 1, 1), ""),
        ):
            self.assertEqual(verdict(figure, [measured]), said)


class LinesTests(SynchronousTestCase):
    """The table as it is printed."""

    def test_cells(self) -> None:
        """A row has every contender's median, both ratios, the verdict and its bound."""
        rounds: list[Round] = [
            {"direct": {"per_second": 60}, "ours": {"per_second": rate}, "go": {"per_second": 10}}
            for rate in (20.0, 30.0, 40.0)
        ]
        row = next(line for line in lines(rounds, _NAMES) if line.startswith("requests/s"))
        cells = row.split("connections")[1].split()
        self.assertEqual(cells, [*"60 30 - 10 - - 3.00 - yes, aim too >= 2.4 x go".split()])

    def test_every_figure(self) -> None:
        """Each figure has a row, measured or not, and all rows fit under the heading, however many are compared."""
        for names in (_NAMES, (*_NAMES, "noting")):
            printed = list(lines([], names))
            self.assertEqual(len(printed), 2 + len(FIGURES))
            self.assertTrue(all(len(line) <= len(printed[1]) for line in printed))

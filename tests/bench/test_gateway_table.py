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
        """The ratio is the median of the rounds' ratios, not the ratio of the medians."""
        rounds = [_round(10, 10, 1), _round(60, 20, 1), _round(20, 5, 1)]
        self.assertEqual(ratio(rounds, "it", "go"), 3)

    def test_absent(self) -> None:
        """There is no ratio to whom was never measured."""
        self.assertIsNone(ratio([{"ours": {"it": 1.0}}], "it", "go"))

    def test_incomplete_round(self) -> None:
        """A round without the peer does not count."""
        self.assertEqual(ratio([{"ours": {"it": 9.0}}, _round(4, 2, 1)], "it", "go"), 2)


class AddedTests(SynchronousTestCase):
    """What a contender adds is what is more than without one."""

    def test_added(self) -> None:
        """The time without a proxy is taken off, by median and tail apart."""
        found = with_added(
            {"direct": {"first_p50": 100, "first_p99": 200}, "go": {"first_p50": 350, "first_p99": 900}},
        )
        self.assertEqual((found["go"]["added_p50"], found["go"]["added_p99"]), (250, 700))
        self.assertNotIn("added_p50", found["direct"])

    def test_less_than_noise(self) -> None:
        """What seems to be faster than no proxy at all adds a microsecond."""
        found = with_added({"direct": {"first_p50": 9, "first_p99": 9}, "ours": {"first_p50": 5, "first_p99": 9}})
        self.assertEqual((found["ours"]["added_p50"], found["ours"]["added_p99"]), (1, 1))


class VerdictTests(SynchronousTestCase):
    """Whether a figure holds is said without reading ratios."""

    figure = Figure("it", "it", must=Target("go", 1.5, at_least=True), aim=Target("nginx", 0.5, at_least=True))

    def test_aim(self) -> None:
        """Both bounds are met, each against its own peer."""
        self.assertEqual(verdict(self.figure, [_round(150, 100, 300)]), "yes, aim too")

    def test_must_only(self) -> None:
        """What must hold does, what is aimed at does not."""
        self.assertEqual(verdict(self.figure, [_round(150, 100, 301)]), "yes")

    def test_missed(self) -> None:
        """What must hold does not."""
        self.assertEqual(verdict(self.figure, [_round(149, 100, 1)]), "NO")

    def test_not_compared(self) -> None:
        """Without the peer nothing is claimed."""
        self.assertEqual(verdict(self.figure, [{"ours": {"it": 1.0}}]), "not compared")

    def test_absolute(self) -> None:
        """A bound of its own needs no peer, and less is better."""
        figure = Figure("it", "it", must=Target(None, 10))
        self.assertEqual(verdict(figure, [{"ours": {"it": 10.0}}]), "yes")
        self.assertEqual(verdict(figure, [{"ours": {"it": 10.1}}]), "NO")

    def test_nothing_held(self) -> None:
        """A figure without a bound has no verdict."""
        self.assertEqual(verdict(Figure("it", "it"), [_round(1, 1, 1)]), "")


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
        self.assertEqual(cells, [*"60 30 - 10 - - 3.00 - yes, aim too >= 1.5 x go".split()])

    def test_every_figure(self) -> None:
        """Each figure has a row, measured or not, and all rows fit under the heading."""
        printed = list(lines([], _NAMES))
        self.assertEqual(len(printed), 2 + len(FIGURES))
        self.assertTrue(all(len(line) <= len(printed[1]) for line in printed))

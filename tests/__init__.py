"""Tests of Aileron; they mirror the package."""

import gc
from importlib.util import find_spec
from typing import Any

gc.set_threshold(50_000)  # what the tests import is looked through as a whole otherwise, a fifth of their time

if find_spec("hypothesis") is not None:  # not where only installed programs are tested
    from hypothesis import HealthCheck, core, settings

    from tests.extent import SEED, examples

    # How long examples take says how busy the machine is.  The seed says which examples are tried, also where CI is
    # set.  Of several failures trial would show that there are several.
    vars(core)["global_force_seed"] = SEED
    settings.register_profile(
        "ours",
        deadline=None,
        derandomize=False,
        max_examples=examples(100),
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("ours")

if find_spec("twisted.trial") is not None:  # not where the test command only reads what others have counted
    from twisted.trial.reporter import Reporter

    from tests.extent import how_to_repeat

    _format = Reporter._formatFailureTraceback

    def _format_with_notes(reporter: Reporter, failure: Any) -> str:
        """Add what trial does not show: the example on which a property failed, and how to try the same parts again."""
        notes = getattr(getattr(failure, "value", None), "__notes__", ())
        return "\n".join([_format(reporter, failure), *notes, how_to_repeat(), ""])

    Reporter._formatFailureTraceback = _format_with_notes  # type: ignore[method-assign]

"""Tests of Aileron; they mirror the package."""

import gc
import os
from importlib.util import find_spec

gc.set_threshold(50_000)  # what the tests import is looked through as a whole otherwise, a fifth of their time

if find_spec("hypothesis") is not None:  # not where only installed programs are tested
    from hypothesis import HealthCheck, core, settings

    from tests.extent import SEED, SEED_VARIABLE, examples

    # How long examples take says how busy the machine is.  The seed says which examples are tried, also where CI is
    # set.  Of several failures trial would show that there are several.
    if SEED_VARIABLE in os.environ:
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

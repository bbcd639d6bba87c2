"""Tests of Aileron; they mirror the package."""

from importlib.util import find_spec

if find_spec("hypothesis") is not None:  # not where only installed programs are tested
    from hypothesis import HealthCheck, settings

    settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("untimed")  # how long examples take says how busy the machine is

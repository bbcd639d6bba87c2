"""The features. Each has a directory here, declares itself as its C{FEATURE}, and can be left out.

Other packages import only this package's C{__init__}, and know no feature by name.
"""

from ._collection import BUILT_IN, FeatureSet, RunningFeatures
from .core import Core, DaemonProcess, ListeningSites
from .feature import Feature, RunningFeature

__all__ = [
    "BUILT_IN",
    "Core",
    "DaemonProcess",
    "Feature",
    "FeatureSet",
    "ListeningSites",
    "RunningFeature",
    "RunningFeatures",
]

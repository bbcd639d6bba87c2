"""Packages that agents publish with npm, twine or cargo: read from the request, and shown with what changed."""

from ._published import MOST_ANSWER_BYTES, FetchedAnswer, NotFetched, PackageRegistry
from ._showing import PackageShower
from ._uploads import PACKAGE_FORMS, NotAPackage, PackageUpload, UploadRequest, read_upload

__all__ = [
    "MOST_ANSWER_BYTES",
    "PACKAGE_FORMS",
    "FetchedAnswer",
    "NotAPackage",
    "NotFetched",
    "PackageRegistry",
    "PackageShower",
    "PackageUpload",
    "UploadRequest",
    "read_upload",
]

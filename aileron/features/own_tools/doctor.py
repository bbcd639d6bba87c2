"""The findings of C{aileron doctor} about the services that agents' own tools may use."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from aileron.cli.doctor.findings import DoctorFinding, remark, wrong

NO_BUBBLEWRAP = "bubblewrap is not installed, so there is no sandbox in which agents' own tools could use services."


def find_problems(status: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Iterator[DoctorFinding]:
    """Yield a finding for each reason why tools cannot use a service that was added, or that config.yaml names.

    :param status: the response of C{GET /v1/status}.
    """
    about = status.get("own_tools")
    if about is None or not about["services"]:
        return
    for problem in about["problems"]:
        yield wrong(f"Own tools: {problem}", "See: aileron own-tools list")
    if shutil.which("bwrap", path=environment.get("PATH")) is None:
        yield remark(NO_BUBBLEWRAP, "Install the package: bubblewrap")

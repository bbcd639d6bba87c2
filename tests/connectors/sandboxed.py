"""The machines on which tests of sandboxes run."""

from __future__ import annotations

import shutil
import subprocess
from unittest import SkipTest


def require_sandbox(made: object) -> None:
    """Skip a test if this machine can make no sandbox.

    :param made: what Aileron would make one with, or None.
    :raises SkipTest: there is no bubblewrap, or it makes none either.
    :raises AssertionError: bubblewrap makes one, and Aileron does not.
    """
    if made is not None:
        return
    program = shutil.which("bwrap")
    command = (str(program), "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "true")
    if program and subprocess.run(command, capture_output=True, check=False).returncode == 0:
        raise AssertionError("bubblewrap makes a sandbox on this machine, and Aileron makes none")
    raise SkipTest("this machine makes no sandboxes")

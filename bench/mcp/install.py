"""Installs others' servers to compare with: C{python -m bench.mcp.install DIRECTORY}.  The only part that downloads."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

MCP_PROXY = "mcp-proxy==0.13.0"
FASTMCP = "fastmcp==4.1.2"
NODE = ("@modelcontextprotocol/sdk@1.32.2", "gpt-tokenizer@4.0.0")
_PEERS = Path(__file__).parent / "peers"


def install(directory: Path) -> None:
    """Make them lie under C{directory}, each with what it needs apart from the others'.

    :raises subprocess.CalledProcessError: pip or npm fails.
    """
    for name, requirement in (("mcp-proxy", MCP_PROXY), ("fastmcp", FASTMCP)):
        venv.create(directory / name, with_pip=True)
        python = str(directory / name / "bin/python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", requirement], check=True)
    node = directory / "node"
    node.mkdir(exist_ok=True)
    subprocess.run(["npm", "install", "--prefix", str(node), "--no-audit", "--no-fund", *NODE], check=True)
    shutil.copy(_PEERS / "server.mjs", node)


if __name__ == "__main__":
    install(Path(sys.argv[1]).absolute())

"""FastMCP's proxy before the daemon's own C{/mcp}; run by an interpreter that has FastMCP."""

import os

from fastmcp.client.transports import StreamableHttpTransport  # type: ignore[import-not-found]
from fastmcp.server import create_proxy  # type: ignore[import-not-found]

remote = StreamableHttpTransport(
    os.environ["BENCH_URL"] + "/mcp", headers={"Authorization": f"Bearer {os.environ['BENCH_TOKEN']}"}
)
create_proxy(remote).run(show_banner=False)

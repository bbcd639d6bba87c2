"""axe-core, which looks for what keeps people from using a page."""

import json
from pathlib import Path
from typing import Any

from tests.functional.chromium import Page
from tests.functional.install import axe
from tests.functional.opencode import program

_FOUND = """axe.run(document, %s).then(({ violations }) => violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => [html, failureSummary])]))"""


async def faults(page: Page, *rules: str) -> Any:
    """The serious and critical faults of a page: for each rule what breaks it, and why.

    :param rules: no others are looked at; none: all are.
    """
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_source())
    options = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
    return await page.evaluate(_FOUND % json.dumps(options))


def _source() -> str:
    """The library; as an expression whose value can be sent."""
    directory = Path(program()).parents[3]
    return axe(directory).read_text(encoding="utf-8") + ";0"

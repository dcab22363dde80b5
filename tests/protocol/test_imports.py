"""The protocol is pure."""

import subprocess
import sys
from pathlib import Path

PROBE = """
import sys
import scrapy_rep.protocol
print([name for name in ("scrapy", "twisted", "sqlite3", "redis", "asyncio", "socket", "logging")
       if name in sys.modules])
"""


def test_the_protocol_loads_no_scrapy():
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, cwd=root, check=True
    )
    assert done.stdout.strip() == "[]"

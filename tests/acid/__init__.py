"""The acid test: a web on loopback for crawlers of any kind, and a scorecard from its log.

It is the web of ``example_project/`` with more stories.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "example_project"))

"""Draw the page of results from results.json: ``python -m conformance.page``.

With the folder of an earlier version, print what came out otherwise since:
``python -m conformance.page FOLDER``.
"""

import sys
from pathlib import Path

from . import results

if __name__ == "__main__":
    found = results.read()
    if sys.argv[1:]:
        folder = Path(sys.argv[1])
        before = results.read_cases(folder / "cases.json"), results.read(folder / "results.json")
        print(results.markdown(results.changes(before, (results.read_cases(), found))))
    else:
        results.write(found)

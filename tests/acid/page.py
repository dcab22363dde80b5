"""Draw the page of results from results.json: ``python -m acid.page``.

With the results of an earlier version, print which stories came out otherwise since:
``python -m acid.page BEFORE.json``.
"""

import sys
from pathlib import Path

from . import results

if __name__ == "__main__":
    found = results.read()
    if sys.argv[1:]:
        print(results.markdown(results.changes(results.read(Path(sys.argv[1])), found)))
    else:
        results.write(found)

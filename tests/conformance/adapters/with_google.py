"""Google's parser, whose binary ``robots_main`` is given: it is started anew for each case."""

import subprocess
import sys
import tempfile

from pipe import escaped, serve


def allowed(body, token, url):
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        command = [sys.argv[1], file.name, token, escaped(url)]
        status = subprocess.run(command, check=False, capture_output=True).returncode
    return {0: True, 1: False}[status]


serve(bytes, allowed)

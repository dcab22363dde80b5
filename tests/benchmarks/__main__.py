"""Run the benchmarks that need no network and a few minutes: ``python -m tests.benchmarks``."""

from __future__ import annotations

import subprocess
import sys

MODULES = ("compare", "process_request", "hostile")


def main():
    for module in MODULES:
        print(f"== {module}", flush=True)
        subprocess.run([sys.executable, "-m", f"tests.benchmarks.{module}"], check=True)


if __name__ == "__main__":
    main()

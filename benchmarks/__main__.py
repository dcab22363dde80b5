"""Run the benchmarks that need no network and a few minutes: ``python -m benchmarks``."""

from __future__ import annotations

import subprocess
import sys

MODULES = ("compare", "process_request", "hostile")


def main():
    for module in MODULES:
        print(f"== {module}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{module}"], check=True)


if __name__ == "__main__":
    main()

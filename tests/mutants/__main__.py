"""Mutation testing: `python -m tests.mutants [ROOM…] [--sample N] [--only TEXT] [--seed N] [--workers N]`.

Each mutant is one small change of one module. The tests of its room run against it until one of
them fails: it is killed. A mutant that no test notices survives: a test is missing, or the mutant
is equal to the original and stands in equal.txt with the reason.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from time import monotonic

from tests.mutants.mutations import mutants_of

ROOT = Path(__file__).parents[2]
ROOMS = {
    "protocol": "protocol conformance",
    "decision": "decision spidermiddlewares commands downloadermiddlewares",
    "admission": "admission downloadermiddlewares scheduler",
    "cache": "cache spidermiddlewares downloadermiddlewares fetch scheduler",
    "fetch": "fetch downloadermiddlewares",
    "downloadermiddlewares": "downloadermiddlewares scheduler stacks",
    "scheduler": "scheduler downloadermiddlewares",
}
"""The folders of tests of each room of scrapy_rep."""
COPIED = ("scrapy_rep", "tests", "docs", "example_project", "pyproject.toml", "README.md")
EQUAL = Path(__file__).with_name("equal.txt")
TIMEOUT = 600
"""Seconds after which a run of tests counts as hung, and the mutant as killed."""


def equal():
    """Return module, line and change of the mutants that no test can kill."""
    rows = [
        line.split(" | ") for line in EQUAL.read_text().splitlines() if line[:1] not in {"", "#"}
    ]
    return {tuple(row[:3]) for row in rows}


def own_tests(path, room):
    """Return the test files named after the module: they run first, as they know it best."""
    names = (f"test_{path.stem}.py", f"test_{path.parent.name}_{path.stem}.py")
    return [str(found.relative_to(ROOT)) for name in names for found in (ROOT / "tests").rglob(name)
            if room in found.parts]  # fmt: skip


def passes(folder, paths):
    """Return whether the tests pass; a run that hangs doesn't."""
    command = [
        sys.executable,
        *["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"],
    ]
    environment = {**os.environ, "PYTHONPATH": str(folder), "HYPOTHESIS_PROFILE": "mutants"}
    process = subprocess.Popen(
        [*command, *paths], cwd=folder, env=environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        return process.wait(TIMEOUT) in {0, 5}
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return False


def survives(mutant, room, folders):
    folder = folders.get()
    path = folder / mutant.path
    original = path.read_bytes()
    try:
        path.write_bytes(mutant.source())
        own = own_tests(mutant.path, room)
        runs = [own] if own else []
        runs += [[f"tests/{tests}"] for tests in ROOMS[room].split()]
        return all(passes(folder, run) for run in runs)
    finally:
        path.write_bytes(original)
        folders.put(folder)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", default=[*ROOMS])
    parser.add_argument("--sample", type=int, help="mutants of a room, at random; by default all")
    parser.add_argument("--only", metavar="TEXT", help="mutants whose line of output has it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    args = parser.parse_args()
    os.chdir(ROOT)
    known_equal = equal()
    with tempfile.TemporaryDirectory() as scratch:
        folders = SimpleQueue()
        for number in range(args.workers):
            folder = Path(scratch, str(number))
            for name in COPIED:
                copy = shutil.copytree if Path(name).is_dir() else shutil.copy
                folder.mkdir(exist_ok=True)
                copy(name, folder / name)
            folders.put(folder)
        for room in args.rooms:
            run(room, args, folders, known_equal)


def run(room, args, folders, known_equal):
    modules = sorted(Path("scrapy_rep", room).rglob("*.py"))
    made = [mutant for module in modules for mutant in mutants_of(module)]
    made = [mutant for mutant in made if (args.only or "") in str(mutant)]
    drawn = made
    if args.sample is not None and args.sample < len(made):
        drawn = sorted(random.Random(args.seed).sample(made, args.sample), key=made.index)
    began = monotonic()
    results = Counter()
    with ThreadPoolExecutor(args.workers) as pool:
        futures = [(mutant, pool.submit(survives, mutant, room, folders)) for mutant in drawn]
        for mutant, future in futures:
            row = str(mutant.path), mutant.text, f"{mutant.before} -> {mutant.after}"
            result = (
                "killed" if not future.result() else "equal" if row in known_equal else "survived"
            )
            results[result] += 1
            if result == "survived":
                print(f"survived  {mutant}", flush=True)
    share = results["survived"] / max(1, len(drawn) - results["equal"])
    print(
        f"{room}: {len(made)} mutants, {len(drawn)} tried, {results['killed']} killed, "
        f"{results['equal']} equal, {results['survived']} survived ({share:.1%}), "
        f"{monotonic() - began:.0f} s", flush=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()

"""What the acid test found of each crawler, as JSON, and the tables that are drawn from it.

``python -m acid.results`` draws the page of tables anew.
"""

import json
from pathlib import Path

VERSION = "2.0"
"""Of the stories. CHANGES.md says what changed with it."""
HERE = Path(__file__).parent
FILE = HERE / "results.json"
PAGE = HERE / "RESULTS.md"
README = HERE.parents[1] / "README.md"
BEGIN, END = "<!-- python -m tests.acid.compare -->\n", "<!-- end -->\n"
WHOSE = ("RFC 9309", "Google", "decision")
KINDS = ("robots tags", "politeness")
"""Of stories that are not about robots.txt, and so not counted by whose rule they are."""
BEST_KNOWN = (
    "scrapy-rep",
    "Scrapy's built-in",
    "Crawlee (Python)",
    "Crawl4AI",
    "Scrapling",
    "Wget 1",
    "HTTrack",
)
"""The crawlers in the README."""
KEPT, STRICT, NOT_KEPT = "kept", "too strict", "not kept"


def is_strict(fault):
    """Return whether a fault is that something was left out which is allowed."""
    return fault.endswith((" is allowed, and was not requested", "nothing was requested"))


def read(path=FILE):
    return json.loads(path.read_text(encoding="utf-8"))


def summary(found):
    """Rows of a table: how many stories each crawler kept, by whose rule they are, and what is set."""
    columns = [of(story) for story in found["stories"]]
    totals = [f"{name} ({columns.count(name)})" for name in (*WHOSE, *KINDS)]
    yield ("crawler", f"kept (of {len(columns)})", STRICT, NOT_KEPT, *totals, "set")
    for crawler in by_kept(found):
        came = [verdict(fault) for fault in crawler["faults"]]
        counts = [came.count(each) for each in (KEPT, STRICT, NOT_KEPT)]
        for name in (*WHOSE, *KINDS):
            counts.append(sum(a == name and b == KEPT for a, b in zip(columns, came, strict=True)))
        what = "; ".join(what for what, _ in crawler["settings"])
        yield (f"{crawler['name']} {crawler['version']}", *map(str, counts), what)


def settings(found):
    yield ("crawler", "set", "why")
    for crawler in by_kept(found):
        for what, why in crawler["settings"]:
            yield (crawler["name"], what, why)


def failures(found):
    yield ("crawler", NOT_KEPT, STRICT)
    for crawler in by_kept(found):
        came = [verdict(fault) for fault in crawler["faults"]]
        yield (
            crawler["name"],
            *(names(found, came, each) or "none" for each in (NOT_KEPT, STRICT)),
        )


def names(found, came, what):
    both = zip(found["stories"], came, strict=True)
    return "; ".join(story["story"] for story, each in both if each == what)


def stories(found):
    yield ("story", "what it shows", "about", "rule", "the sentence that decides")
    for story in found["stories"]:
        needs = story["needs"] and f" A crawler has to be set {story['needs']}."
        yield (
            story["story"],
            f"{story['shows']}{needs and '.'}{needs}",
            story["kind"],
            story["clause"],
            story["by"],
        )


def commands(found):
    return "\n".join(
        f"# {each['name']} {each['version']}, {each['date']}\n{each['command']}"
        for each in found["crawlers"]
    )


def by_kept(found):
    return sorted(found["crawlers"], key=lambda each: -each["faults"].count(""))


def verdict(faults):
    """What came of a story, whose first fault is one of being too strict only if all are."""
    if not faults:
        return KEPT
    return STRICT if is_strict(faults.partition(";")[0]) else NOT_KEPT


def worse(*faults):
    """Return the faults of the run in which a story came out worst."""
    return max(faults, key=lambda each: (KEPT, STRICT, NOT_KEPT).index(verdict(each)))


def whose(story):
    return story["clause"].partition(" §")[0].partition(",")[0]


def of(story):
    """Return the column of a table in which a story is counted."""
    return story["kind"] if story["kind"] in KINDS else whose(story)


def markdown(rows):
    head, *rest = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *rest))


def page(found):
    return f"""\
# Crawlers and robots.txt: results of the acid test

Version {found["version"]} of the stories, {len(found["stories"])} of them. Drawn from `results.json` by `python -m acid.results`.
What the words mean is in `README.md`.

Each crawler runs as it is installed, and each story alone; in the last one, all are crawled at once. Of a story that differs
between two runs, the worse counts.

{markdown(summary(found))}
Kept by whose rule: the stories about robots.txt; those about robots tags and politeness have columns of their own.

## What is set

{markdown(settings(found))}
## Not kept

{markdown(failures(found))}
## Commands

```
{commands(found)}
```

## Stories

{markdown(stories(found))}"""


def readme(found):
    """Return the README of the project with the table of what was found."""
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    rows = (row[:4] for row in summary(found) if row[0].startswith(("crawler", *BEST_KNOWN)))
    table = markdown(rows).replace("| --- " * 4, "| --- " + "| --: " * 3)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}"


def write(found):
    text = f'{{"version": {json.dumps(found["version"])}'
    for key in ("stories", "crawlers"):
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in found[key])
        text += f', "{key}": [\n{lines}\n]'
    FILE.write_text(f"{text}}}\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
    if README.exists() and BEGIN in README.read_text(encoding="utf-8"):
        README.write_text(readme(found), encoding="utf-8")


if __name__ == "__main__":
    write(read())

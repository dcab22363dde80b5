"""The acid test of this crawler, all stories at once; and the tables of what was found of others."""

import json
import subprocess
import sys

import pytest

from tests.acid import results
from tests.acid.__main__ import CRAWL_ENDS
from tests.acid.compare import ALL, OURS, resolved
from tests.acid.stories import ACID
from tests.waiting import PATIENCE

has_loopback = pytest.mark.skipif(
    sys.platform != "linux", reason="has one address of loopback, and the stories have many"
)
NAMES = [*(story.name for story in ACID), CRAWL_ENDS["story"]]


def faults(tmp_path, *command):
    """What was found of a crawler, by story."""
    path = tmp_path / "acid.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.acid", "--json", str(path), "--", *command],
        cwd=results.ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert path.exists(), done.stderr
    found = {
        row["story"]: row["faults"] + row["came"] * bool(row["faults"])
        for row in json.loads(path.read_text())
    }
    assert list(found) == NAMES
    assert done.returncode == any(found.values())
    return {story: why for story, why in found.items() if why}


@pytest.mark.first
@has_loopback
def test_scrapy_rep_keeps_every_story(tmp_path):
    assert faults(tmp_path, *resolved(OURS)) == {}


@has_loopback
@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "-c", "", "{start}"],
        [*resolved(OURS), "-s", "ADDONS={}"],
    ],
    ids=["sends nothing", "asks for no robots.txt"],
)
def test_who_does_not_look_keeps_none(tmp_path, command):
    assert list(faults(tmp_path, *command)) == NAMES[:-1]


def test_each_story_has_its_name_and_its_rule():
    assert len(set(NAMES)) == len(NAMES)
    for story in [*results.read()["stories"], CRAWL_ENDS]:
        assert results.whose(story) in results.WHOSE


def test_the_docs_have_what_was_found():
    found = results.read()
    assert [each["story"] for each in found["stories"]] == NAMES
    clauses = [story.clause for story in ACID]
    assert [each["clause"] for each in found["stories"]][:-1] == clauses
    commands = {crawler.name: crawler.command for crawler in ALL}
    for each in found["crawlers"]:
        assert each["command"] == commands[each["name"]], f"{each['name']} was run otherwise"
        assert len(each["faults"]) == len(NAMES)
    assert found["crawlers"][0]["faults"] == [""] * len(NAMES)


def test_the_readme_has_what_was_found():
    assert results.readme(results.read()) == results.README.read_text(encoding="utf-8")

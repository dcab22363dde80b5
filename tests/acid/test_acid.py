"""The acid test of this crawler, all stories at once; the folder by itself; what was found of others."""

import json
import os
import shutil
import sys

import jsonschema
import pytest

from tests.acid import results
from tests.acid.compare import resolved
from tests.acid.crawlers import ALL, QUICK
from tests.acid.stories import ACID, CRAWL_ENDS
from tests.acid.story import KINDS
from tests.waiting import run_to_end

has_loopback = pytest.mark.skipif(
    sys.platform != "linux", reason="has one address of loopback, and the stories have many"
)
NAMES = [*(story.name for story in ACID), CRAWL_ENDS["story"]]
OURS = [*resolved(ALL[0].command), *QUICK]
NEEDY = {story.name for story in ACID if story.needs}


def faults(tmp_path, *command):
    """What was found of a crawler, by story, from a copy of the folder that nothing else is beside."""
    shutil.copytree(results.HERE, tmp_path / "acid", ignore=shutil.ignore_patterns("test_*"))
    path = tmp_path / "acid.json"
    arguments = ("--json", str(path), "--", *command)
    done = run_to_end(sys.executable, "-m", "acid", *arguments, cwd=tmp_path)
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
    assert faults(tmp_path, *OURS) == {}


@has_loopback
@pytest.mark.parametrize(
    ("command", "kept"),
    [([sys.executable, "-c", "", "{start}"], []), ([*OURS, "-s", "ADDONS={}"], NAMES[-1:])],
    ids=["sends nothing", "asks for no robots.txt"],
)
def test_who_does_not_look_keeps_none(tmp_path, command, kept):
    found = faults(tmp_path, *command)
    assert [name for name in NAMES if name not in found] == kept


def test_the_folder_imports_the_standard_library_alone(tmp_path):
    shutil.copytree(results.HERE, tmp_path / "acid")
    program = "import sys; sys.path.append('.'); import acid.compare, acid.__main__"
    environment = os.environ | {"PYTHONPATH": ""}
    done = run_to_end(sys.executable, "-I", "-S", "-c", program, cwd=tmp_path, env=environment)
    assert done.stderr == ""


def test_each_story_has_its_name_and_its_rule():
    assert len(set(NAMES)) == len(NAMES)
    for story in results.read()["stories"]:
        assert story["kind"] in KINDS
        assert story["by"].endswith((".", "characters", "UTF-8 range", "0D.0A"))
        assert results.of(story) in {*results.WHOSE, *results.KINDS}


def test_the_results_are_those_of_these_stories():
    found = results.read()
    assert found["version"] == results.VERSION
    assert found["stories"] == [*(story.row for story in ACID), CRAWL_ENDS]
    by_name = {crawler.name: crawler for crawler in ALL}
    for each in found["crawlers"]:
        crawler = by_name[each["name"]]
        assert each["command"] == crawler.command, f"{each['name']} was run otherwise"
        assert [tuple(row) for row in each["settings"]] == [*crawler.settings]
        assert len(each["faults"]) == len(NAMES)


def test_the_results_are_as_their_schema_says():
    schema = json.loads((results.HERE / "results.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(results.read())


def test_scrapy_rep_keeps_as_installed_what_defaults_can_keep():
    (ours,) = (each for each in results.read()["crawlers"] if each["name"] == "scrapy-rep")
    assert {name for name, fault in zip(NAMES, ours["faults"], strict=True) if fault} <= NEEDY


def test_the_pages_have_what_was_found():
    found = results.read()
    assert results.page(found) == results.PAGE.read_text(encoding="utf-8")
    assert results.readme(found) == results.README.read_text(encoding="utf-8")

"""Figures, tables and numbers of the docs are of the same runs, and show nothing of who ran them."""

import re
from xml.etree import ElementTree as ET

import pytest

from scrapy_rep.settings import Options
from tests.benchmarks import results
from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "usage" / "comparison.rst").read_text(encoding="utf-8")
IMAGES = dict(re.findall(r"\.\. image:: \.\./_static/figures/(\w+)\.svg\n    :alt: (.+)", PAGE))
TABLES = re.findall(r"\.\. measured:: (\w+)\n    :varied: (.+)\n    :ratios: (.+)\n(?=\n|\Z)", PAGE)
RATIOS = re.findall(r":ratio:`([^`]+)`", PAGE)
TITLE = "{http://purl.org/dc/elements/1.1/}title"
RUN = "{http://purl.org/dc/elements/1.1/}identifier"


def test_each_run_has_its_figure_and_its_table():
    runs = {path.stem for path in results.FOLDER.glob("*.json")}
    assert runs == {path.stem for path in results.FOLDER.glob("*.svg")}
    assert runs == IMAGES.keys() == {name for name, _, _ in TABLES}
    assert runs == {ratio.split()[0] for ratio in RATIOS}


@pytest.mark.parametrize("name", IMAGES)
def test_a_figure_is_drawn_from_the_run_beside_it(name):
    path = results.FOLDER / f"{name}.svg"
    drawn = ET.parse(path).getroot()
    assert next(drawn.iter(RUN)).text == results.digest(name), "make figures"
    assert next(drawn.iter(TITLE)).text
    assert path.stat().st_size < 60_000


@pytest.mark.parametrize("name", IMAGES)
def test_a_run_says_how_it_was_made_and_not_where(name):
    run = results.read(name)
    assert set(run) == {"command", "date", "versions", "rows"}
    assert re.fullmatch(r"python -m tests\.benchmarks\.\w+[\w .-]*", run["command"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", run["date"])
    assert all(re.fullmatch(r"\d[\w.]+", version) for version in run["versions"].values())


@pytest.mark.parametrize(("name", "varied", "ratios"), TABLES)
def test_the_ratios_of_a_table_were_measured(name, varied, ratios):
    for row in results.read(name)["rows"]:
        assert all(results.ratio(row, ratio) for ratio in ratios.split(", "))
        assert all(isinstance(row[name], float) for name in re.split(", |/", ratios))
        columns = [isinstance(value, float) for value in row.values()]
        assert columns.index(True) == len(varied.split(", "))


@pytest.mark.parametrize("text", RATIOS)
def test_a_ratio_of_the_text_was_measured(text):
    assert re.fullmatch(r"[\d,]+(\.\d+)?", results.ratio_of(text))


def test_no_ratio_of_the_text_is_typed():
    assert not re.search(r"\d\s+times\b|\d\s*x\b", re.sub(r":ratio:`[^`]+`", "", PAGE))


def test_the_drawings_have_the_times_of_the_settings():
    options = Options()
    assert options.unreachable_stale_after == options.unreachable_allow_after
    first, deferred = options.retry_delay, options.defer_timeout
    assert options.retry_delay_max == 3_600.0
    shown = {
        "wait": [f"for {deferred / 60:g} min at most"],
        "unreachable": [
            f"after {first:g} s, {2 * first:g} s, {4 * first:g} s",
            "in the end once an hour",
            f">{deferred / 60:g} min<",
            f">{options.unreachable_stale_after / 86_400:g} days<",
        ],
    }
    for name, texts in shown.items():
        drawn = results.FOLDER.with_name(f"{name}.svg").read_text()
        assert [text for text in texts if text not in drawn] == []


@pytest.mark.parametrize(
    "path", sorted(results.FOLDER.parent.glob("**/*.svg")), ids=lambda p: p.stem
)
def test_an_image_has_its_colours_for_dark_mode(path):
    drawn = path.read_text()
    assert "@media (prefers-color-scheme: dark)" in drawn
    assert not re.search(r'(fill|stroke|style)="[^"]*#[0-9a-f]{3}', drawn)

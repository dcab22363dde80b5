"""The README is read on PyPI, too: its links are absolute, and those of ours lead somewhere."""

import re
from importlib.metadata import metadata

import pytest

from tests.docs.blocks import ROOT

README = (ROOT / "README.md").read_text()
LINKS = re.findall(r"^\[[^]]+\]: (\S+)$|\]\(([^)]+)\)", README, re.MULTILINE)
DOCS = "https://scrapy-rep.readthedocs.io/"
URLS = dict(each.split(", ", 1) for each in metadata("scrapy-rep").get_all("Project-URL"))
RAW = URLS["Source"].replace("//github.com", "//raw.githubusercontent.com") + "/main/"


def of_ours(link):
    """The file in the repository that a link leads to; None for a link to others."""
    if link.startswith(DOCS + "en/latest/"):
        return "docs/" + link.removeprefix(DOCS + "en/latest/").replace(".html", ".rst")
    if link.startswith(RAW):
        return link.removeprefix(RAW)
    if link.startswith(URLS["Source"]):
        return re.sub(r"^/(blob|tree)/main/", "", link.removeprefix(URLS["Source"]))
    return None


@pytest.mark.parametrize("link", sorted({first or second for first, second in LINKS}))
def test_a_link_of_the_readme(link):
    assert link.startswith("https://")
    path = of_ours(link)
    assert path is None or (ROOT / path).exists()


def test_labels_of_the_readme_have_their_link():
    used = set(re.findall(r"\]\[([^]]+)\]", README))
    assert used == set(re.findall(r"^\[([^]]+)\]: ", README, re.MULTILINE))


def test_the_project_says_where_it_is():
    assert {"Documentation", "Source", "Changelog", "Issues"} <= URLS.keys()
    assert URLS["Documentation"] == DOCS

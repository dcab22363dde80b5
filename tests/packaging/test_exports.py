"""What users may name: it comes from the root, and nothing else is documented."""

import re
from importlib import import_module

import pytest

import scrapy_rep
from tests.docs.blocks import PAGES, ROOT

PUBLIC = ("scrapy_rep", "scrapy_rep.signals", "scrapy_rep.protocol")
NAMED = re.compile(r"\bscrapy_rep(?:\.\w+)*")


def is_public(name):
    """Say whether a dotted name is one that users may write."""
    module, _, attribute = name.rpartition(".")
    return (
        name in PUBLIC
        or name.startswith("scrapy_rep.protocol.")
        or (module == "scrapy_rep" and attribute in scrapy_rep.__all__)
        or (module == "scrapy_rep.signals" and hasattr(import_module(module), attribute))
    )


def test_the_root_exports_what_users_name_and_nothing_else():
    assert dir(scrapy_rep) == sorted(scrapy_rep.__all__)
    for name in scrapy_rep.__all__:
        assert getattr(scrapy_rep, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        scrapy_rep.nothing  # noqa: B018 - looked up only


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_else_is_documented(page):
    text = re.sub(r"https?://\S+", "", page.read_text())
    assert [name for name in NAMED.findall(text) if not is_public(name)] == []


def test_the_example_project_names_nothing_else():
    files = (ROOT / "example_project").rglob("*.py")
    found = {name for path in files for name in NAMED.findall(path.read_text())}
    # A logger's name is no import; the fleet's table reads its stats.
    assert {name for name in found if not is_public(name)} <= {"scrapy_rep.stats"}

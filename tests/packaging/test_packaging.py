"""What the distribution is to hold, and what its import is not to load."""

import subprocess
import sys
from importlib.metadata import metadata, requires, version
from pathlib import Path

import pytest

import scrapy_rep
from tests.docs.blocks import ROOT
from tests.waiting import PATIENCE


def test_the_distribution_is_typed_has_its_version_and_says_that_it_is_for_scrapy():
    assert Path(scrapy_rep.__file__).with_name("py.typed").exists()
    assert scrapy_rep.__version__ == version("scrapy-rep")
    assert f"\nversion: {version('scrapy-rep')}\n" in (ROOT / "CITATION.cff").read_text()
    assert "Framework :: Scrapy" in metadata("scrapy-rep").get_all("Classifier")
    assert "scrapy>=2.14" in requires("scrapy-rep")


@pytest.mark.parametrize(
    ("imports", "loads_no"),
    [
        ("scrapy_rep, scrapy_rep.protocol", ["scrapy", "twisted", "logging", "asyncio"]),
        ("scrapy_rep.addon", ["twisted.internet.reactor"]),
    ],
)
def test_what_an_import_does_not_load(imports, loads_no):
    check = f"import sys, {imports}; assert not sys.modules.keys() & {loads_no}"
    subprocess.run([sys.executable, "-c", check], check=True, timeout=PATIENCE)

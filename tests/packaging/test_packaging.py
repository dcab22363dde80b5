"""What the distribution is to hold, and what its import is not to load."""

import subprocess
import sys
from importlib.metadata import metadata, requires, version
from pathlib import Path

import scrapy_rep
from tests.docs.blocks import ROOT
from tests.waiting import PATIENCE


def test_the_distribution_is_typed_has_its_version_and_says_that_it_is_for_scrapy():
    assert Path(scrapy_rep.__file__).with_name("py.typed").exists()
    assert scrapy_rep.__version__ == version("scrapy-rep")
    assert f"\nversion: {version('scrapy-rep')}\n" in (ROOT / "CITATION.cff").read_text()
    assert "Framework :: Scrapy" in metadata("scrapy-rep").get_all("Classifier")
    assert "scrapy>=2.14" in requires("scrapy-rep")


def test_importing_the_package_loads_no_scrapy_and_no_reactor():
    check = (
        "import scrapy_rep, scrapy_rep.protocol, sys;"
        "assert not {'scrapy', 'twisted', 'logging', 'asyncio'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", check], check=True, timeout=PATIENCE)


def test_importing_the_middleware_installs_no_reactor():
    check = (
        "import scrapy_rep.addon, scrapy_rep.downloadermiddlewares.robotstxt, sys;"
        "assert 'twisted.internet.reactor' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", check], check=True, timeout=PATIENCE)

"""robots.txt of FTP origins, from a real FTP server: SPEC S-5."""

import subprocess
import sys
from pathlib import Path

import pytest

from scrapy_rep.admission.admission import Admission
from tests.crawling.crawl import crawl
from tests.crawling.web import answer
from tests.waiting import PATIENCE


@pytest.fixture
def ftp(tmp_path):
    """A folder, and the port of an FTP server that shows it to anonymous visitors."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(Path(__file__).with_name("ftp_server.py")), tmp_path],
        stdout=subprocess.PIPE,
        text=True,
    )
    yield tmp_path, int(process.stdout.readline())
    process.terminate()
    process.stdout.close()
    process.wait(PATIENCE)


@pytest.mark.spec("S-5")
async def test_rules_of_ftp(ftp):
    folder, port = ftp
    (folder / "robots.txt").write_text("User-agent: *\nDisallow: /private\n")
    (folder / "private").write_text("secret")
    (folder / "public").write_text("words")
    base = f"ftp://127.0.0.1:{port}"
    # The crawl's own account is not for robots.txt.
    result = await crawl(
        f"{base}/private",
        f"{base}/public",
        settings={"FTP_USER": "account", "FTP_PASSWORD": "password"},
    )
    assert [response.body for response in result.responses] == [b"words"]
    assert result.dropped == {f"{base}/private": "rule"}
    assert (folder / "logins").read_text().split() == ["anonymous", "account"]


async def test_a_file_of_ftp_by_another_url(ftp):
    """Escapes are undone, parameters and query are not sent."""
    folder, port = ftp
    (folder / "robots.txt").write_text("User-agent: *\nDisallow: /dir/\nDisallow: /private$\n")
    (folder / "dir").mkdir()
    for name in ("dir/file", "private", "public"):
        (folder / name).write_text("words")
    paths = ["dir%2Ffile", "private?a", "private;a", "public;a?b"]
    result = await crawl(*(f"ftp://127.0.0.1:{port}/{path}" for path in paths))
    assert [response.url.rpartition("/")[2] for response in result.responses] == ["public;a?b"]


@pytest.mark.spec("S-5")
async def test_no_robots_txt_on_ftp(ftp):
    folder, port = ftp
    (folder / "public").write_text("words")
    result = await crawl(f"ftp://127.0.0.1:{port}/public")
    assert [response.body for response in result.responses] == [b"words"]


async def test_a_file_of_ftp_ends_the_pause_of_its_host(ftp, web):
    folder, port = ftp
    (folder / "public").write_text("words")
    site = web.site(answer(404), paths={"/": [answer(429)]})
    file = f"ftp://127.0.0.1:{port}/public"
    result = await crawl(site.url("/"), settings={"RETRY_ENABLED": False}, phases=[[file]])
    assert result.fetched == [site.url("/"), file]
    assert Admission.of(result.crawler).hosts.paused == {}


@pytest.mark.spec("F-10")
async def test_an_ftp_server_that_cannot_be_reached():
    assert set((await crawl("ftp://127.0.0.1:1/public")).dropped.values()) == {"unreachable"}

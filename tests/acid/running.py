"""Runs a crawler against stories, and returns what came of each."""

import asyncio
import os
import signal
import ssl
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from .certificate import make_certificate
from .results import is_strict
from .server import FrontSite
from .sites import AcidSite
from .stories import ACID, CRAWL_ENDS

LATER = 3
"""Seconds that are longer than each ``max-age`` and ``Retry-After`` of a story that changes."""
NOT_BEGUN = "the start page was not requested"
TRUST = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
"""Variables that name a file of certificates, to OpenSSL, Requests and Node."""


async def run(command, *, stories=ACID, token="demobot", at_most=300.0, quiet=False):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # some crawlers give up root's rights
        pem = make_certificate(Path(folder) / "loopback.pem", map(host, ACID))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        sites = [AcidSite(story, host(story), token) for story in stories]
        for site in sites:
            await site.open(context)
        front = FrontSite([each for site in sites for each in site.all])
        front.seconds = LATER
        await front.open()
        ended = await crawl(command, front.url("/"), pem, at_most, quiet=quiet)
    faults = [] if ended else [f"the crawl had not ended after {at_most:g} s"]
    faults += [] if front.log else [NOT_BEGUN]
    return [*map(row, sites), {**CRAWL_ENDS, "came": [], "faults": faults}]


def host(story):
    """Return the address of a story's origin: localhost is the first address alone."""
    return "127.0.0.1" if "localhost" in repr(story) else f"127.0.0.{ACID.index(story) + 2}"


async def crawl(command, start, certificate, at_most, *, quiet):
    """Run the crawler; return whether it has ended by itself."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o777)
        process = await asyncio.create_subprocess_exec(
            *(part.replace("{start}", start) for part in command),
            cwd=folder,
            env={**os.environ, **dict.fromkeys(TRUST, str(certificate))},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL if quiet else sys.stderr,
            stderr=asyncio.subprocess.DEVNULL if quiet else sys.stderr,
            start_new_session=True,
        )
        try:
            await asyncio.wait_for(process.wait(), at_most)
        except asyncio.TimeoutError:
            return False
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return True


def row(site):
    came = sorted((request.at, each, request) for each in site.all for request in each.log)
    begun = came[0][0] if came else 0
    return {
        **site.story.row,
        "came": [
            f"{at - begun:6.2f} {request.method} {each.url(request.target)}"
            for at, each, request in came
        ],
        "faults": sorted(dict.fromkeys(site.faults), key=is_strict),
    }


def scorecard(rows):
    width = max(len(row["story"]) for row in rows)
    for row in rows:
        robots = sum(line.endswith("/robots.txt") for line in row["came"])
        came = f"{robots:3} {len(row['came']) - robots:5}"
        told = "; ".join(row["faults"][:3]) or "ok"
        more = f"; and {len(row['faults']) - 3} more" if len(row["faults"]) > 3 else ""
        yield f"{row['story']:{width}}  {came}  {row['clause']:27}  {told}{more}"
    kept = sum(not row["faults"] for row in rows)
    yield f"{kept} of {len(rows)} stories kept"

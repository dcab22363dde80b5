"""Runs a crawler against the web of the acid test: ``python -m tests.acid -- COMMAND {start}``.

``{start}`` is the URL of the page that links to all stories. The command has the certificate of the
https sites in ``SSL_CERT_FILE``, and an empty directory as its current one.
The status is 1 if a story was not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import ssl
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import web

from tests.acid import results
from tests.acid.stories import ACID
from tests.acid.web import AcidSite
from tests.certificate import make_certificate

LATER = 3
"""Seconds that are longer than each ``max-age`` and ``Retry-After`` of a story that changes."""
TRUST = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
"""Variables that name a file of certificates, to OpenSSL, Requests and Node."""
CRAWL_ENDS = {
    "story": "the crawl ends",
    "shows": "no site keeps it from that",
    "clause": "decision, time limits",
}


async def run(command, *, stories=ACID, token="demobot", at_most=300.0, quiet=False):
    """Return what came of each story, as rows."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # some crawlers give up root's rights
        pem = make_certificate(Path(folder) / "loopback.pem", map(host, ACID))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        sites = [AcidSite(story, host(story), token) for story in stories]
        for site in sites:
            await site.open(context)
        front = web.FrontSite([each for site in sites for each in site.all])
        front.seconds = LATER
        await front.open()
        ended = await crawl(command, front.url("/"), pem, at_most, quiet=quiet)
    rows = [row(site) for site in sites]
    return [
        *rows,
        {
            **CRAWL_ENDS,
            "came": [],
            "faults": [] if ended else [f"the crawl had not ended after {at_most:g} s"],
        },
    ]


def host(story):
    # localhost is the first address alone.
    return "127.0.0.1" if "localhost" in repr(story) else f"127.0.0.{ACID.index(story) + 2}"


async def crawl(command, start, certificate, at_most, *, quiet):
    """Run the crawler; return whether it has ended by itself."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        process = await asyncio.create_subprocess_exec(
            *(part.replace("{start}", start) for part in command),
            cwd=folder,
            env={
                **os.environ,
                **dict.fromkeys(TRUST, str(certificate)),
            },
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
    story = site.story
    came = sorted((request.at, each, request) for each in site.all for request in each.log)
    begun = came[0][0] if came else 0
    return {
        "story": story.name,
        "shows": story.shows,
        "clause": story.clause,
        "came": [
            f"{at - begun:6.2f} {request.method} {each.url(request.target)}"
            for at, each, request in came
        ],
        "faults": sorted(dict.fromkeys(site.faults), key=results.is_strict),
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


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.acid", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--token", default="demobot", help="the product token of the crawler")
    parser.add_argument("--at-most", type=float, default=300, metavar="SECONDS")
    parser.add_argument("--only", action="append", metavar="STORY", help="may be given again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there, too")
    parser.add_argument("--wire", action="store_true", help="print what came of what was not kept")
    parser.add_argument("command", nargs="+", metavar="COMMAND {start}")
    options = parser.parse_args()
    stories = [story for story in ACID if not options.only or story.name in options.only]
    rows = asyncio.run(
        run(options.command, stories=stories, token=options.token, at_most=options.at_most)
    )
    print("\n".join(scorecard(rows)))
    if options.wire:
        for each in rows:
            if each["faults"]:
                print(f"\n{each['story']}: {'; '.join(each['faults'])}", *each["came"], sep="\n  ")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return any(each["faults"] for each in rows)


if __name__ == "__main__":
    sys.exit(main())

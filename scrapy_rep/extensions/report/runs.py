"""The runs of a crawl with JOBDIR: a report includes the counts of earlier runs."""

from __future__ import annotations

import json
import logging
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy_rep import stats
from scrapy_rep.extensions.report.counts import Counts
from scrapy_rep.extensions.report.rows import check_type
from scrapy_rep.extensions.report.writers import replacing
from scrapy_rep.extensions.robots_file import as_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler

    from scrapy_rep.settings import Options

logger: Final = logging.getLogger(__name__)

_NAME: Final = "robots-report.json"
_FIGURES: Final = {
    "fetches": stats.REQUEST_COUNT,
    "responses": "response_received_count",
    "deferred": stats.DEFERRED,
    "would_defer": stats.DRY_RUN_DEFERRED,
    "nofollow": stats.TAGS_NOFOLLOW,
    "noindex": stats.TAGS_NOINDEX,
    "too_many_tags": stats.TAGS_TOO_MANY,
    "subresources_forbidden": stats.SUBRESOURCE_FORBIDDEN,
    "subresources_unknown": stats.SUBRESOURCE_UNKNOWN,
    **{f"license_required_{n}": stats.LICENSE_REQUIRED.format(status=n) for n in (401, 402, 403)},
}
"""Stats that are summed over all runs."""


class Runs:
    """The counts of earlier runs, stored in JOBDIR as a JSON report."""

    def __init__(self, jobdir: str | None) -> None:
        self._path = None if jobdir is None else Path(jobdir, _NAME)
        self._before: dict[str, Any] = {}

    def read(self) -> Counts:
        """Return the counts of earlier runs."""
        if self._path is None:
            return Counts()
        try:
            if not self._path.exists():
                self._path.touch()  # so that a run counts even if it is killed
                return Counts()
            report = json.loads(self._path.read_bytes() or "null")
            if report is None:
                return Counts()
            before = {name: report["crawl"][name] for name in ("started", "runs")}
            # An older version may have stored fewer figures.
            before |= {name: report["crawl"].get(name, 0) for name in _FIGURES}
            for name, value in before.items():
                check_type(value, str if name == "started" else int)
            counts = Counts.from_dict(report)
        except Exception:
            logger.exception("Can't read %s, the report does not include earlier runs", self._path)
            return Counts()
        self._before = before
        return counts

    def figures(self, started: str, counts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the figures of all runs."""
        before = self._before
        return {
            "started": before.get("started", started),
            "runs": before.get("runs", 0) + 1,
            **{name: before.get(name, 0) + counts.get(stat, 0) for name, stat in _FIGURES.items()},
        }

    def write(self, report: dict[str, Any]) -> None:
        """Store a report for the next run."""
        if self._path is None:
            return
        try:
            with replacing(self._path) as file:
                file.write(as_json(report))
        except OSError:
            logger.exception(
                "Can't write %s, the report of the next run will not include this one", self._path
            )


def versions_and_settings(crawler: Crawler, options: Options) -> dict[str, Any]:
    """Return versions and changed settings of a run."""
    settings = {**options.non_default(), "USER_AGENT": crawler.settings["USER_AGENT"]}
    if options.overrides:
        settings["REP_OVERRIDES"] = [asdict(override) for override in options.overrides]
    return {
        "versions": {
            **{name: version(name) for name in ("scrapy-rep", "Scrapy")},
            "Python": platform.python_version(),
        },
        "settings": settings,
    }

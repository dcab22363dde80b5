"""The runs of a crawl with JOBDIR. A report includes the counts of all earlier runs."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.extensions.report.counts import Counts
from scrapy_rep.extensions.report.rows import check_type
from scrapy_rep.extensions.report.writers import open_replacement
from scrapy_rep.extensions.robots_file import as_json
from scrapy_rep.settings import Options
from scrapy_rep.utils.log import LimitedLogger

_NAME: Final = "robots-report.json"
_FIGURES: Final = {
    "fetches": stats.REQUEST_COUNT,
    "responses": "response_received_count",
    "deferred": stats.DEFERRED,
    "would_defer": stats.DRY_RUN_DEFERRED,
    "hosts_with_delay": stats.DRY_RUN_HOSTS_WITH_DELAY,
    "seconds_with_delays": stats.DRY_RUN_SECONDS,
    "nofollow": stats.TAGS_NOFOLLOW,
    "noindex": stats.TAGS_NOINDEX,
    "too_many_tags": stats.TAGS_TOO_MANY,
    "subresources_forbidden": stats.SUBRESOURCE_FORBIDDEN,
    "subresources_unknown": stats.SUBRESOURCE_UNKNOWN,
    **{f"license_required_{n}": stats.LICENSE_REQUIRED.format(status=n) for n in (401, 402, 403)},
}
"""Names in the report and their stats, whose values are added up over all runs."""


class Runs:
    """The counts of earlier runs, which are stored in JOBDIR as a JSON report."""

    def __init__(self, jobdir: str | None) -> None:
        self._path = None if jobdir is None else Path(jobdir, _NAME)
        self._before: dict[str, Any] = {}
        self._logger = LimitedLogger(__name__)

    def read(self) -> Counts:
        """Return the counts of earlier runs; empty ones if there are none, or after an error."""
        if self._path is None:
            return Counts()
        try:
            if not self._path.exists():
                self._path.touch()  # if JOBDIR can't be written, that is logged now, not at the end
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
            self._logger.exception(
                "Can't read %s, the report does not include earlier runs", self._path
            )
            return Counts()
        self._before = before
        return counts

    def sum_figures(self, started: str, counts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the figures of all runs, including this one.

        ``started`` is when this run began; ``counts`` are its stats.
        """
        before = self._before
        return {
            "started": before.get("started", started),
            "runs": before.get("runs", 0) + 1,
            **{name: before.get(name, 0) + counts.get(stat, 0) for name, stat in _FIGURES.items()},
        }

    def write(self, report: dict[str, Any]) -> None:
        """Store ``report`` in JOBDIR for the next run. Without JOBDIR, it has no effect."""
        if self._path is None:
            return
        try:
            with open_replacement(self._path) as file:
                file.write(as_json(report))
        except OSError:
            self._logger.exception(
                "Can't write %s, the report of the next run will not include this one", self._path
            )


def versions_and_settings(crawler: Crawler, options: Options) -> dict[str, Any]:
    """Return the versions of the software, and the settings that differ from their defaults."""
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

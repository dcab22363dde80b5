"""The report as one HTML page, which needs nothing but itself."""

from __future__ import annotations

import base64
from collections import Counter
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import jinja2
from markupsafe import Markup

from scrapy_rep.extensions.report.writers import most_telling, replacing
from scrapy_rep.utils.text import moment, printable

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_rep.extensions.report.counts import Collected

MAX_ROWS: Final = 1_000
"""Origins on the page; the others are summed up."""
MAX_RULES: Final = 50
MAX_DIFFERING: Final = 200

_OUTCOMES: Final = ("available", "unavailable", "unreachable", "not asked for")


class PageWriter:
    """HTML: nothing that a site wrote is trusted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._differing: list[dict[str, Any]] = []
        here = files("scrapy_rep.extensions.report")
        self._script = (here / "page.js").read_text("utf-8")
        self._style = (here / "page.css").read_text("utf-8")
        environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
        environment.filters["moment"] = _moment
        environment.filters["shown"] = lambda text: printable(str(text))
        self._template = environment.from_string((here / "page.html").read_text("utf-8"))

    def line(self, line: dict[str, Any]) -> None:
        """Keep those URLs on which the built-in would have decided otherwise, up to a bound."""
        if line["kind"] == "differs" and len(self._differing) < MAX_DIFFERING:
            self._differing.append(line)

    def finish(self, crawl: dict[str, Any], collected: Collected) -> None:
        """Write the page."""
        rows = list(most_telling(collected))
        beyond = rows[MAX_ROWS:]
        outcomes = Counter(row["outcome"] for row in rows)
        text = self._template.render(
            crawl=crawl,
            rows=rows[:MAX_ROWS],
            beyond=beyond,
            beyond_outcomes=Counter(row["outcome"] for row in beyond),
            beyond_dropped=sum(row["dropped"] for row in beyond),
            outcomes=[(name, outcomes[name]) for name in _OUTCOMES if outcomes[name]],
            most=max(outcomes.values(), default=1),
            origins=len(rows),
            rules=collected.as_dict()["rules"][:MAX_RULES],
            more_rules=max(0, len(collected.rules) - MAX_RULES),
            reasons=collected.reasons.most_common(),
            unreachable=[row for row in rows if row["unreachable_since"] is not None][:MAX_ROWS],
            overrides=list(collected.overrides.values()),
            differing=self._differing,
            differing_count=collected.differing,
            script=Markup(self._script),  # noqa: S704 - our own file
            style=Markup(self._style),  # noqa: S704 - our own file
            script_hash=_hash(self._script),
            style_hash=_hash(self._style),
        )
        with replacing(self._path) as file:
            file.write(text)


def _hash(text: str) -> str:
    """Return what a Content-Security-Policy calls an inline script."""
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()


def _moment(seconds: float | None) -> str:
    return "" if seconds is None else moment(seconds).removesuffix(" UTC")

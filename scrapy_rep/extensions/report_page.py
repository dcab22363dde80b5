"""The report as one HTML page without external files."""

import base64
import re
from collections import Counter
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

import jinja2
from markupsafe import Markup

from scrapy_rep.utils.text import printable

MAX_ROWS: Final = 1_000
"""Maximum number of origins on the page. Further origins are counted together."""
MAX_DROPS: Final = 200
"""Maximum number of rules and other causes of drops on the page."""

_OUTCOMES: Final = ("available", "unavailable", "unreachable", "not asked for")
_LINES: Final = re.compile(r"\r\n|\r|\n")
_HERE: Final = files("scrapy_rep.extensions")


def render(report: dict[str, Any]) -> str:
    """Return the HTML page for ``report``. All texts of sites are escaped. Lists are cut."""
    origins, drops = report["origins"], report["drops"]
    rows = origins[:MAX_ROWS]
    outcomes = Counter(row["outcome"] for row in origins)
    script, style = (
        (_HERE / name).read_text("utf-8") for name in ("report_page.js", "report_page.css")
    )
    return _template().render(
        **report,
        rows=rows,
        beyond=len(origins) - len(rows),
        outcomes=[(name, outcomes[name]) for name in _OUTCOMES if outcomes[name]],
        most=max(outcomes.values(), default=1),
        shown_drops=drops[:MAX_DROPS],
        unreachable=[row for row in origins if row["unreachable_since"]][:MAX_ROWS],
        delays=[row for row in origins if row["crawl_delay"]][:MAX_ROWS],
        refusing=[row for row in origins if row["refused"] or row["back_offs"]][:MAX_ROWS],
        shown_texts=_texts_of([*drops[:MAX_DROPS], *rows], report["texts"]),
        script=Markup(script),  # noqa: S704 - our own file
        style=Markup(style),  # noqa: S704 - our own file
        script_hash=_csp_hash(script),
        style_hash=_csp_hash(style),
    )


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    # ISO 8601 with a space for the T, without milliseconds.
    environment.filters["moment"] = lambda iso: (iso or "")[:19].replace("T", " ")
    environment.filters["number"] = "{:,}".format
    environment.filters["shown"] = lambda text: printable(str(text))
    return environment.from_string((_HERE / "report_page.html").read_text("utf-8"))


def _texts_of(rows: list[dict[str, Any]], texts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the robots.txt texts that ``rows`` refer to, with line numbers."""
    shown: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = row["sha256"]
        if name not in texts or name in shown:
            continue
        lines = _LINES.split(texts[name]["text"].rstrip("\r\n"))
        shown[name] = {
            "lines": "\n".join(
                f"{number:>4}  {printable(line.replace(chr(9), '    '))}"
                for number, line in enumerate(lines, 1)
            ),
            "url": row.get("robotstxt_url") or f"{row.get('origin', '')}/robots.txt",
            "left_out": texts[name]["left_out"],
        }
    return shown


def _csp_hash(text: str) -> str:
    """Return the hash of an inline script or style, for the Content-Security-Policy."""
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()

"""Sphinx configuration. Settings, stats and tables are checked against the code, or drawn from it.

``.. setting:: NAME`` and ``.. stat:: name`` describe what the code has under that name. One that
the code doesn't have, or that the docs don't describe, is a warning, and warnings are errors.
"""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import date
from importlib import import_module
from operator import attrgetter
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.domains.std import GenericObject
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

import scrapy_rep
from scrapy_rep import stats
from scrapy_rep.protocol.lint import CODES
from scrapy_rep.protocol.outcome import STATUS_CLASSES, Evidence, outcome_of
from scrapy_rep.protocol.usage.statement import ANY, MEANINGS, REVISIONS
from scrapy_rep.settings import Options
from tests.acid import results as acid
from tests.benchmarks import results
from tests.conformance import results as answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

    Rows = Iterable[tuple[str, ...]]

project = "scrapy-rep"
author = "the scrapy-rep developers"
copyright = "the scrapy-rep developers"  # noqa: A001 - Sphinx's name for it
release = version = scrapy_rep.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "scrapy-rep"
html_static_path = ["_static"]
html_css_files = ["docs.css"]
# Literal blocks are lines of the log and commands, not Python.
highlight_language = "text"
autodoc_typehints = "none"
autodoc_member_order = "bysource"

SETTINGS = {option.metadata["name"]: option for option in fields(Options)}
STATS = {value for value in vars(stats).values() if str(value).startswith("robotstxt/")}

logger = logging.getLogger(__name__)


def in_words(value: Any, takes: str) -> str:
    """Return a default as a person writes it: ``86400 (24 hours)``."""
    units = {}
    if "seconds" in takes:
        units = {86_400: "days", 3_600: "hours", 60: "minutes"}
    elif "bytes" in takes:
        units = {1_048_576: "MiB", 1_024: "KiB"}
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    for size, unit in units.items():
        if value >= 2 * size and value % size == 0:
            return f"{value} ({value // size} {unit})"
    return repr(value)


def table_of(rows: Sequence[tuple[str, ...]], widths: tuple[int, ...] = ()) -> nodes.table:
    """Return a table, whose first row is its head."""
    columns = [nodes.colspec(colwidth=width) for width in widths or [1] * len(rows[0])]
    group = nodes.tgroup("", *columns, cols=len(rows[0]))
    head, body = nodes.thead(), nodes.tbody()
    for row in rows:
        cells = (nodes.entry("", nodes.paragraph(text=cell)) for cell in row)
        (body if head.children else head).append(nodes.row("", *cells))
    group += [head, body]
    return nodes.table("", group, classes=["colwidths-given"] * bool(widths))


class Known(GenericObject):
    """An object that the code has, by name."""

    known: Any = ()

    def handle_signature(self, sig: str, signode: addnodes.desc_signature) -> str:
        """Complain of a name that the code doesn't have."""
        if sig not in self.known:
            logger.warning("%s is no %s", sig, self.objtype, location=signode)
        return super().handle_signature(sig, signode)


class Setting(Known):
    """A setting, whose default and values are those of the code."""

    known = SETTINGS

    def transform_content(self, content_node: addnodes.desc_content) -> None:
        """Begin with the default, and with what the setting takes."""
        option = SETTINGS.get(self.arguments[0])
        if option is not None:
            takes = option.metadata["reader"].takes
            default = nodes.literal(text=in_words(option.default, takes))
            line = nodes.paragraph(
                "", "Default: ", default, nodes.Text(f". Valid values: {takes}.")
            )
            content_node.insert(0, line)


class Settings(SphinxDirective):
    """The table of all settings, in the order of the page, after those that are named first."""

    option_spec = {"first": directives.unchanged_required}  # noqa: RUF012 - as in Sphinx

    def run(self) -> list[nodes.Node]:
        """Return a place for the table, which is made when the whole page was read."""
        return [nodes.comment("", "", first=self.options["first"].split(), classes=["settings"])]


def breaking(name: str) -> Iterator[nodes.Node]:
    """Return a name that a narrow screen breaks behind an underscore or a slash."""
    for part in re.findall(r"[^_/]+[_/]*|[_/]+", name):
        yield nodes.Text(part)
        yield nodes.raw("", "<wbr>", format="html")


def fill_settings(_: Sphinx, doctree: nodes.document) -> None:
    """Make the table of settings, whose last column is the first sentence about each."""
    for place in doctree.findall(
        lambda node: "settings" in getattr(node, "attributes", {}).get("classes", [])
    ):
        found = {}
        for described in doctree.findall(addnodes.desc):
            if described["objtype"] == "setting":
                signature, content = described.children
                found[signature.astext()] = content.children[1].astext().partition(". ")[0]
        rows = [("setting", "default", "meaning")]
        first = place["first"]
        for name in [*first, *(name for name in found if name not in first)]:
            option = SETTINGS[name]
            default = in_words(option.default, option.metadata["reader"].takes)
            rows.append((name, default, found[name].rstrip(".")))
        table = table_of(rows, widths=(5, 4, 7))
        for number, row in enumerate(list(table.findall(nodes.row))[1:]):
            if number < len(first):
                row["classes"].append("first")
            name, default = (row[column][0] for column in (0, 1))
            shown = nodes.literal("", "", *breaking(name.astext()))
            target = f"setting-{name.astext()}"
            link = nodes.reference("", "", shown, internal=True, refid=target)
            name.replace_self(nodes.paragraph("", "", link))
            shown = nodes.literal("", "", *breaking(default.astext()))
            default.replace_self(nodes.paragraph("", "", shown))
        place.replace_self(table)


class Stat(Known):
    """A stat."""

    known = STATS


def status_classes() -> Rows:
    """Return what HTTP statuses mean for robots.txt."""
    yield ("status", "robots.txt is", "source")
    for row in STATUS_CLASSES:
        status = f"{row.first} to {row.last}" if row.last > row.first else f"{row.first}"
        yield (status, row.kind.value, row.source.partition("; SPEC")[0])
    other = outcome_of(Evidence(0.0, "", status=600), b"")
    yield ("any other", other.kind.value, "Google")


def rooms() -> Rows:
    """Return the sub-packages, each with the first sentence of its docstring."""
    yield ("package", "purpose")
    for module in iter_modules(scrapy_rep.__path__):
        if module.ispkg:
            doc = import_module(f"scrapy_rep.{module.name}").__doc__ or ""
            yield (module.name, doc.partition("\n")[0].rstrip(".").replace("``", ""))


def usage_revisions() -> Rows:
    """Return what is read about use, and by which revision."""
    yield ("source", "what is read")
    yield from REVISIONS.items()


def usage_meanings() -> Rows:
    """Return what usage preferences mean."""
    yield ("source", "label", "purposes")
    for (source, label), purposes in MEANINGS.items():
        yield (source, "too many lines" if label == ANY else label, ", ".join(purposes))


def findings() -> Rows:
    """Return what ``scrapy robots lint`` finds."""
    yield ("finding", "meaning")
    yield from CODES.items()


def acid_crawlers() -> Rows:
    """Return how many stories of the acid test each crawler kept."""
    return (row[:-1] for row in acid.summary(acid.read()))


def passed() -> Rows:
    """Return how many conformance cases each parser passes."""
    for name, *numbers in answers.table(answers.read()["engines"]):
        yield (name, *(number.replace(" of ", "/") for number in numbers))


TABLES: dict[Callable[[], Rows], tuple[int, ...]] = {
    status_classes: (),
    rooms: (1, 3),
    usage_revisions: (1, 3),
    usage_meanings: (),
    findings: (1, 4),
    acid_crawlers: (),
    passed: (4, 2, 2, 2, 2, 2, 2),
}
"""Tables that are drawn from the code, or from results, with the widths of their columns."""

NOTES: dict[Callable[[], Rows], Callable[[], str]] = {
    passed: lambda: "Passed, of those of the {cases} cases that apply to the parser.".format_map(
        answers.read()
    ),
}
"""What stands below some of them."""


class Drawn(SphinxDirective):
    """One of TABLES: ``.. usage-meanings::``."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        for path in (acid.FILE, answers.RESULTS):
            self.env.note_dependency(str(path))
        (rows,) = (each for each in TABLES if each.__name__ == self.name.replace("-", "_"))
        table = table_of([*rows()], TABLES[rows])
        return [table, nodes.paragraph(text=NOTES[rows]())] if rows in NOTES else [table]


class Measured(SphinxDirective):
    """The table of ratios that a benchmark found, and how: ``.. measured:: shares``."""

    required_arguments = 1
    option_spec = {"varied": directives.unchanged_required, "ratios": directives.unchanged_required}  # noqa: RUF012 - as in Sphinx

    def run(self) -> list[nodes.Node]:
        """Return the table, and the command below it."""
        run = results.read(self.arguments[0])
        varied, ratios = (self.options[name].split(", ") for name in ("varied", "ratios"))
        rows = [(*varied, *ratios)]
        for row in run["rows"]:
            of = [
                f"{value:,}" if isinstance(value, int) else value
                for value in list(row.values())[: len(varied)]
            ]
            rows.append((*of, *(results.ratio(row, name) for name in ratios)))
        day = date.fromisoformat(run["date"])
        versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
        text = f": {versions}, {day.day} {day:%B %Y}."
        command = nodes.literal(text=run["command"])
        self.env.note_dependency(str(results.FOLDER / f"{self.arguments[0]}.json"))
        return [table_of(rows), nodes.paragraph("", "", command, nodes.Text(text))]


class Ratio(SphinxRole):
    """A ratio that a benchmark found: ``:ratio:`rules 300 Protego/ours```."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the number."""
        try:
            return [nodes.Text(results.ratio_of(self.text))], []
        except (KeyError, OSError, ValueError):
            logger.warning("%s was not measured", self.text, location=self.get_location())
            return [], []


class Step(SphinxRole):
    """A function, and its file: ``:step:`admission.hosts:Hosts.ended```."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return both. Complain of a function that the code doesn't have."""
        module, _, name = self.text.partition(":")
        try:
            attrgetter(name)(import_module(f"scrapy_rep.{module}"))
        except (ImportError, AttributeError):
            logger.warning("%s is no function", self.text, location=self.get_location())
        file = nodes.literal(text=f"{module.replace('.', '/')}.py")
        return [nodes.strong(text=name), nodes.Text(" ("), file, nodes.Text(")")], []


class AcidBars(SphinxDirective):
    """A bar for each crawler of the acid test. Their numbers are in the table of the same rows."""

    def run(self) -> list[nodes.Node]:
        """Return the bars, as HTML."""
        self.env.note_dependency(str(acid.FILE))
        head, *rows = acid.summary(acid.read())
        kinds = head[1].partition(" (")[0], *head[2:4]
        key = "".join(f"<span><i class='b{n}'></i>{kind}</span>" for n, kind in enumerate(kinds))
        bars = []
        for name, *numbers in (row[:4] for row in rows):
            parts = "".join(
                f"<i class='b{n}' style='flex-grow:{number}'>{number}</i>"
                for n, number in enumerate(numbers)
                if number != "0"
            )
            ours = " class='ours'" if name.startswith("scrapy-rep") else ""
            bars.append(f"<dt{ours}>{name}</dt><dd{ours}>{parts}</dd>")
        html = f"<div class='bars'><p>{key}</p><dl>{''.join(bars)}</dl></div>"
        return [nodes.raw("", html, format="html")]


def check_all_described(_: Sphinx, env: BuildEnvironment) -> None:
    """Complain of what the code has and no page describes."""
    described = {(kind, name) for kind, name in env.get_domain("std").objects}
    for kind, known in (("setting", SETTINGS), ("stat", STATS)):
        for name in sorted(known):
            if (kind, name) not in described:
                logger.warning("%s %s is described nowhere", kind, name)


def setup(app: Sphinx) -> None:
    """Register what this file has."""
    for directive in (Setting, Stat):
        name = directive.__name__.lower()
        app.add_object_type(name, name, indextemplate=f"pair: %s; {name}")
        app.add_directive_to_domain("std", name, directive, override=True)
    app.add_directive("settings", Settings)
    app.connect("doctree-read", fill_settings)
    for rows in TABLES:
        app.add_directive(rows.__name__.replace("_", "-"), Drawn)
    app.add_directive("acid-bars", AcidBars)
    app.add_directive("measured", Measured)
    app.add_role("ratio", Ratio())
    app.add_role("step", Step())
    app.connect("env-check-consistency", check_all_described)

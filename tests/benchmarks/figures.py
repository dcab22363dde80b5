"""The figures of the docs, drawn from what benchmarks wrote: ``python -m tests.benchmarks.figures``.

It needs matplotlib, and runs nothing. The same JSON gives the same SVG.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, NullLocator

from tests.benchmarks import results

# Told apart without colours, too: by their marks, and on white with a contrast of 3 at least.
OURS = {"color": "#0b6e4f", "marker": "o"}
THEIRS = {"color": "#c1440e", "marker": "s"}
NONE = {"color": "#5c6470", "marker": "^", "linestyle": ":"}
STYLE = {
    "axes.edgecolor": "#5c6470",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.12,
    "figure.figsize": (5.6, 3.6),
    "font.size": 11,
    "grid.color": "#e3e6ea",
    "legend.frameon": False,
    "lines.linewidth": 2,
    # Text that is found and read out; identifiers that are the same each time.
    "svg.fonttype": "none",
    "svg.hashsalt": "scrapy-rep",
}


class Line(NamedTuple):
    label: str
    column: str
    style: dict
    where: dict = {}  # noqa: RUF012 - never changed


@dataclass
class Figure:
    title: str
    x: str
    x_label: str
    y_label: str
    lines: list[Line]
    scales: dict = field(default_factory=lambda: {"xscale": "log", "yscale": "log"})


FIGURES = {
    "shares": Figure(
        "Pages a second beside sites that hang",
        "hanging",
        "sites whose robots.txt hangs, %",
        "pages a second",
        [
            Line("without robots.txt", "off", NONE),
            Line("scrapy-rep", "ours", OURS),
            Line("Scrapy's built-in", "built-in", THEIRS),
        ],
        {},
    ),
    "rules": Figure(
        "Time for a verdict",
        "rules",
        "rules in the robots.txt",
        "microseconds",
        [Line("scrapy-rep", "ours", OURS), Line("Protego", "Protego", THEIRS)],
    ),
    "memory": Figure(
        "Memory for the rules of an origin",
        "size",
        "size of the robots.txt, bytes",
        "bytes",
        [Line("scrapy-rep", "ours", OURS), Line("Protego", "Protego", THEIRS)],
    ),
    "origins": Figure(
        "Processor time for a new origin",
        "origins",
        "origins of the crawl",
        "microseconds",
        [
            Line("scrapy-rep", "ours", OURS),
            Line("the same, stored before", "again", {**OURS, "linestyle": ":"}),
            Line("Scrapy's built-in", "built-in", THEIRS),
        ],
        {"xscale": "log"},
    ),
    "peak": Figure(
        "Peak memory of a crawl",
        "origins",
        "origins of the crawl",
        "MiB",
        [
            Line("without robots.txt", "off", NONE),
            Line("scrapy-rep", "ours", OURS),
            Line("Scrapy's built-in", "built-in", THEIRS),
        ],
    ),
    "pop": Figure(
        "Time to take a request from the queue",
        "slots",
        "download slots with requests",
        "microseconds",
        [
            Line("scrapy-rep", "ours", OURS, {"waiting": 0}),
            Line("the same, 90 % waiting", "ours", {**OURS, "linestyle": ":"}, {"waiting": 90}),
            Line("Scrapy's", "Scrapy", THEIRS, {"waiting": 0}),
        ],
    ),
}


def draw(name, figure):
    rows = [row for row in results.read(name)["rows"] if row[figure.x] != "all"]
    canvas, axes = plt.subplots(layout="constrained")
    for line in figure.lines:
        shown = [row for row in rows if line.where.items() <= row.items()]
        x, y = ([row[column] for row in shown] for column in (figure.x, line.column))
        axes.plot(x, y, label=line.label, clip_on=False, **line.style)
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label, **figure.scales)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axis.set_minor_locator(NullLocator())
    if not figure.scales:
        axes.set(ylim=0, xticks=[row[figure.x] for row in rows])
    # Above, where no line can be.
    canvas.legend(
        loc="outside upper left", ncols=len(figure.lines), columnspacing=1, handlelength=2
    )
    canvas.savefig(
        results.FOLDER / f"{name}.svg",
        metadata={
            "Title": figure.title,
            "Identifier": results.digest(name),
            "Creator": None,
            "Date": None,
        },
    )
    plt.close(canvas)


def main():
    plt.switch_backend("svg")
    plt.rcParams.update(STYLE)
    for name, figure in FIGURES.items():
        draw(name, figure)
        print(results.FOLDER.joinpath(f"{name}.svg").relative_to(results.FOLDER.parents[2]))


if __name__ == "__main__":
    main()

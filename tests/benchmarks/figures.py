"""The figures of the docs, drawn from what benchmarks wrote: ``python -m tests.benchmarks.figures``.

It needs matplotlib, and runs nothing. The same JSON gives the same SVG.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, NullLocator

from tests.benchmarks import results

# The contrast with the background is at least 3, for text at least 7.
DARK = {
    "#0b6e4f": "#57b98a",
    "#c1440e": "#f08a5d",
    "#5c6470": "#a2abb3",
    "#1d2125": "#e6e8ea",
    "#e3e6ea": "#343b42",
    "#ffffff": "#131416",
}
"""Each colour, and what it is in dark mode. The last one is the background of the docs."""
GREEN, RED, GREY, INK, GRID, GROUND = DARK
# Told apart without colours, too: by their marks.
OURS = {"color": GREEN, "marker": "o"}
THEIRS = {"color": RED, "marker": "s"}
NONE = {"color": GREY, "marker": "^", "linestyle": ":"}
STYLE = {
    "axes.edgecolor": GREY,
    "axes.facecolor": GROUND,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.12,
    "figure.figsize": (5.6, 3.6),
    "font.size": 11,
    "grid.color": GRID,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "axes.labelcolor": INK,
    "figure.facecolor": GROUND,
    "savefig.facecolor": GROUND,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
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


OURS_LINE, SAME = Line("scrapy-rep", "ours", OURS), {**OURS, "linestyle": ":"}
BUILTIN = Line("Scrapy's built-in", "built-in", THEIRS)
ALL_THREE = [Line("without robots.txt", "off", NONE), OURS_LINE, BUILTIN]
BESIDE_PROTEGO = [OURS_LINE, Line("Protego", "Protego", THEIRS)]
AGAIN = [OURS_LINE, Line("the same, stored before", "again", SAME), BUILTIN]
POP = [
    Line("scrapy-rep", "ours", OURS, {"waiting": 0}),
    Line("the same, 90 % waiting", "ours", SAME, {"waiting": 90}),
    Line("Scrapy's", "Scrapy", THEIRS, {"waiting": 0}),
]
WIDE = {"xscale": "log"}
FIGURES = {
    "shares": Figure("Pages a second beside sites that hang", "hanging", "sites whose robots.txt hangs, %", "pages a second", ALL_THREE, {}),
    "newsites": Figure("Pages a second of sites that were never seen", "latency", "latency of the sites, milliseconds", "pages a second", ALL_THREE, WIDE),
    "rules": Figure("Time for a verdict", "rules", "rules in the robots.txt", "microseconds", BESIDE_PROTEGO),
    "memory": Figure("Memory for the rules of an origin", "size", "size of the robots.txt, bytes", "bytes", BESIDE_PROTEGO),
    "origins": Figure("Processor time for a new origin", "origins", "origins of the crawl", "microseconds", AGAIN, WIDE),
    "peak": Figure("Peak memory of a crawl", "origins", "origins of the crawl", "MiB", ALL_THREE),
    "pop": Figure("Time to take a request from the queue", "slots", "download slots with requests", "microseconds", POP),
}  # fmt: skip


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
    path = results.FOLDER / f"{name}.svg"
    canvas.savefig(
        path,
        metadata={
            "Title": figure.title,
            "Identifier": results.digest(name),
            "Creator": None,
            "Date": None,
        },
    )
    plt.close(canvas)
    path.write_text(in_both_modes(path.read_text(encoding="utf-8")), encoding="utf-8")


def in_both_modes(svg):
    """Return the image with colours that are those of dark mode where a person prefers it."""
    for number, light in enumerate(DARK):
        svg = svg.replace(light, f"var(--c{number})")
    light, dark = (
        "".join(f"--c{number}:{color};" for number, color in enumerate(colors))
        for colors in (DARK, DARK.values())
    )
    rules = f":root{{{light}}}@media (prefers-color-scheme: dark){{:root{{{dark}}}}}"
    return svg.replace("</style>", f"{rules}</style>", 1)


def main():
    plt.switch_backend("svg")
    plt.rcParams.update(STYLE)
    for name, figure in FIGURES.items():
        draw(name, figure)
        print(results.FOLDER.joinpath(f"{name}.svg").relative_to(results.FOLDER.parents[2]))


if __name__ == "__main__":
    main()

"""Figures 1 and 2: a binary partition grows cut by cut, and two samples share one."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import TYPE_CHECKING, Any, cast

from cobpm.arrays import FloatArray
from cobpm.experiments.fits import KEPT, exact
from cobpm.experiments.framework import Result, Settings, new_figure, table
from cobpm.experiments.laws import NESTED, UNIFORM_HALVES
from cobpm.experiments.sanity import learned, outline
from cobpm.progress import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cobpm.experiments.sanity import Learned

NAME = "illustrations"
TITLE = "Figures 1 and 2: binary partitions"
SIZE = 300  # points of each sample in Figure 2
PANELS = 6

Box = tuple[tuple[float, float], ...]  # (low, high) in each column
Cut = tuple[Box, int]  # what is halved, along which column


def halves(box: Box, column: int) -> tuple[Box, Box]:
    """The lower and the upper half of a box along a column."""
    low, high = box[column]
    middle = (low + high) / 2
    lower, upper = (
        (*box[:column], side, *box[column + 1 :]) for side in ((low, middle), (middle, high))
    )
    return lower, upper


def within(cells: Sequence[Box], box: Box) -> list[Box]:
    """The cells that lie inside a box."""
    return [
        cell
        for cell in cells
        if all(a >= low and b <= high for (a, b), (low, high) in zip(cell, box, strict=True))
    ]


def clean_cuts(box: Box, cells: Sequence[Box]) -> list[tuple[int, list[list[Box]]]]:
    """The columns along which halving a box cuts no cell, with the cells of both halves."""
    found = []
    for column in range(len(box)):
        parts = [within(cells, half) for half in halves(box, column)]
        if len(cells) > 1 and sum(map(len, parts)) == len(cells):
            found.append((column, parts))
    return found


def sequences(box: Box, cells: Sequence[Box]) -> int:
    """How many decision sequences end in these cells of a box.

    After the first cut, the cuts of both halves can come in any order between each other.
    """
    if len(cells) == 1:
        return 1
    return sum(
        comb(len(cells) - 2, len(parts[0]) - 1)
        * sequences(halves(box, column)[0], parts[0])
        * sequences(halves(box, column)[1], parts[1])
        for column, parts in clean_cuts(box, cells)
    )


def cuts(box: Box, cells: Sequence[Box]) -> list[Cut]:
    """One of these sequences: large boxes are halved first."""
    ahead, found = [(box, list(cells))], list[Cut]()
    while ahead:
        box, inside = ahead.pop(0)
        if len(inside) > 1:
            column, parts = clean_cuts(box, inside)[0]
            found.append((box, column))
            ahead += zip(halves(box, column), parts, strict=True)
    return found


def run(settings: Settings, progress: Progress) -> Result:
    """Learn a partition for each figure."""
    progress("Figure 1", 0.0)
    draws = settings.choose(KEPT, 600)
    x, y = NESTED.sample(1000, settings.rng(2, 1))  # the data of the second sanity test
    first = learned(exact(x, y, settings.seed, draws=draws))
    cells = [
        tuple(zip(low, high, strict=True))
        for low, high in zip(first.low.tolist(), first.high.tolist(), strict=True)
    ]
    whole: Box = ((0.0, 1.0), (0.0, 1.0))
    order, ways = cuts(whole, cells), sequences(whole, cells)
    progress("Figure 2", 0.5)
    pair = UNIFORM_HALVES.sample(SIZE, settings.rng(2, 4))
    second = learned(exact(*pair, settings.seed, draws=draws))
    numbers = {
        "figure_1": {
            "cells": cells,
            "cuts": [{"box": box, "column": column + 1} for box, column in order],
            "sequences": ways,
        },
        "figure_2": {"low": second.low, "high": second.high, "counts": second.counts},
    }
    return Result(
        numbers,
        draw(order, pair, second),
        "A binary partition cut by cut, and a partition that two samples share",
        sections(cells, order, ways, second),
        f"Drawn from learned partitions; the one of Figure 1 has {len(cells)} cells and can be "
        f"reached by {ways} decision sequences.",
    )


def sections(cells: Sequence[Box], order: Sequence[Cut], ways: int, second: Learned) -> list[str]:
    """The text of the page."""
    rows = [
        [step, f"{a:g} to {b:g}", f"{c:g} to {d:g}", column + 1]
        for step, (((a, b), (c, d)), column) in enumerate(order, 1)
    ]
    counts = second.counts
    return [
        "## Figure 1: a decision sequence",
        f"The most probable partition of the second sanity test, into {len(cells)} cells. Each red "
        f"line halves one cell of the partition before it; up to {PANELS - 1} cuts are shown.",
        table(["cut", "x1", "x2", "halved along column"], rows),
        "Different sequences may end in the same partition, says the paper: this one is the end of "
        f"{ways}. The posterior is over sequences, so it counts {ways} times.",
        "## Figure 2: one partition for two samples",
        f"{SIZE} points each of the densities p11 and p12 of the first sanity test, under the most "
        f"probable partition of both together. Its {len(counts)} cells hold "
        f"{counts[:, 0].min():.0f} to {counts[:, 0].max():.0f} points of the first sample and "
        f"{counts[:, 1].min():.0f} to {counts[:, 1].max():.0f} of the second.",
        "The paper's figures have no numbers to compare with.",
    ]


def draw(order: Sequence[Cut], pair: tuple[FloatArray, FloatArray], second: Learned) -> Figure:
    """Figure 1 on top, Figure 2 below."""
    figure = new_figure(9.0, 6.0)
    above, below = cast(Any, figure.subfigures(2, 1, height_ratios=(1, 1.7)))
    above.suptitle("Figure 1", fontsize="medium", fontweight="bold")
    below.suptitle("Figure 2", fontsize="medium", fontweight="bold")
    for step, ax in enumerate(above.subplots(1, PANELS)):
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=(), yticks=())
        if step > len(order):
            ax.axis("off")
            continue
        for number, (box, column) in enumerate(order[:step], 1):
            middle = sum(box[column]) / 2
            ends = box[1 - column]
            line = ((middle, middle), ends) if column == 0 else (ends, (middle, middle))
            newest = number == step
            ax.plot(*line, color="red" if newest else "black", linewidth=2 if newest else 1)
        ax.set_title(f"$\\mathcal{{B}}_{step + 1}$", fontsize="medium")
    for ax, points, name in zip(below.subplots(1, 2), pair, ("first", "second"), strict=True):
        ax.plot(*points.T, ".", markersize=3, color="#3b75af", markeredgewidth=0)
        outline(ax, second)
        ax.set_title(f"{name} sample", fontsize="medium")
    return figure

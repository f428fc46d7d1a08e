"""The section of divergences: each with its interval, as a bar and in numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from cobpm.divergences import Asked, Divergence, parse
from cobpm.report.bars import interval_bar
from cobpm.report.numbers import axis_end, interval, nice_ceiling, number
from cobpm.report.words import meaning

if TYPE_CHECKING:
    from cobpm.posterior import Posterior

IN_NATS = ("kl", "reverse_kl", "jeffreys")  # they share an axis


@dataclass(frozen=True)
class DivergenceRow:
    """One divergence, ready to show."""

    label: str
    meaning: str
    median: str
    interval: str
    mean: str
    note: str
    bar: Markup
    end: str


def divergence_rows(
    post: Posterior, asked: Iterable[Asked], level: float, first: str, second: str
) -> list[DivergenceRow]:
    """A row for each divergence, in the order asked for."""
    chosen = [parse(item, "report") for item in asked]
    table = post.summary(list(asked), level=level, first=first, second=second)
    highs = [float(high) for high in table["high"]]
    ends = _ends(chosen, highs)
    rows = []
    for kind, end, (_, row) in zip(chosen, ends, table.iterrows(), strict=True):
        low, median, high, mean = (float(row[key]) for key in ("low", "median", "high", "mean"))
        label = kind.label[0].upper() + kind.label[1:]
        rows.append(
            DivergenceRow(
                label=label,
                meaning=meaning(kind, first, second),
                median=number(median),
                interval=interval(low, high),
                mean="" if row["note"] else number(mean),
                note=str(row["note"]),
                bar=interval_bar(low, median, high, end),
                end=axis_end(end),
            )
        )
    return rows


def _ends(chosen: list[Divergence], highs: list[float]) -> list[float]:
    """Where each axis ends: at the largest value there is, else beyond all intervals on it."""
    in_nats = [
        high
        for kind, high in zip(chosen, highs, strict=True)
        if _shares_axis(kind) and math.isfinite(high)
    ]
    shared = nice_ceiling(max(in_nats, default=1.0))
    return [
        kind.largest
        if math.isfinite(kind.largest)
        else shared
        if _shares_axis(kind)
        else nice_ceiling(high)
        for kind, high in zip(chosen, highs, strict=True)
    ]


def _shares_axis(kind: Divergence) -> bool:
    return kind.name in IN_NATS

"""Which pictures of the data a report has: maps of two columns, and a card for each column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from markupsafe import Markup

from cobpm.report.axes import Axis
from cobpm.report.column_charts import card, column_axis, line_figure
from cobpm.report.maps import map_figure, shades
from cobpm.report.where import Regions

if TYPE_CHECKING:
    from cobpm.posterior import Posterior
    from cobpm.views import ColumnView, MapView

MAP_COLUMNS = 4  # that differ most: there is a map of each two of them
MOST_CARDS = 24  # columns that are drawn


@dataclass(frozen=True)
class Subject:
    """What the pictures are of.

    Attributes:
        post: The posterior, with the names that the user gave.
        pair: Numbers of the two sets.
        names: Their names, as shown.
        tags: The same with their marks.
        columns: Names of all columns, as shown.
        level: Probability that intervals are to hold.
    """

    post: Posterior
    pair: tuple[int, int]
    names: tuple[str, str]
    tags: tuple[Markup, Markup]
    columns: tuple[str, ...]
    level: float

    @property
    def sets(self) -> tuple[str, str]:
        """The names of the two sets that the user gave."""
        return self.post.names[self.pair[0]], self.post.names[self.pair[1]]

    def axis(self, view: ColumnView, upward: bool = False) -> Axis:
        """The axis of a column."""
        return column_axis(view, self._is_boolean(view.name), upward)

    def map_axes(self, view: MapView, across: ColumnView, up: ColumnView) -> tuple[Axis, Axis]:
        """The axes of a map, whose cells are larger than the bins of its columns."""
        x, y = self.axis(across), self.axis(up, upward=True)
        return (
            replace(x, low=float(view.edges[0][0]), high=float(view.edges[0][-1])),
            replace(y, low=float(view.edges[1][0]), high=float(view.edges[1][-1])),
        )

    def _is_boolean(self, column: str) -> bool:
        kinds = self.post.samples.kinds if self.post.samples is not None else ()
        return bool(kinds) and kinds[self.post.columns.index(column)] == "boolean"


@dataclass(frozen=True)
class Map:
    """A map, what to call it, and the shades that occur in it."""

    label: str
    figure: Markup
    shades: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Pictures:
    """Maps and cards, each with a remark if something is missing."""

    maps: tuple[Map, ...] = ()
    map_note: str = ""
    cards: tuple[Markup, ...] = ()
    card_note: str = ""


def draw(subject: Subject, where: Regions) -> Pictures:
    """All pictures; none if the posterior does not have its points."""
    from cobpm.views import telling_columns

    post, columns = subject.post, subject.columns
    if post.samples is None:
        lost = "The points are not stored with a posterior that was loaded from a file, so"
        notes = f"{lost} there is no map.", f"{lost} columns cannot be drawn."
        return Pictures(map_note=notes[0], card_note=notes[1])
    found = telling_columns(post, *subject.sets, level=subject.level)
    views = {post.columns.index(view.name): view for view in found}  # by number, in order
    shown = list(views.items())[:MOST_CARDS]
    note = f"Shown are the {len(shown)} of {len(columns)} columns that differ most."
    return Pictures(
        maps=tuple(_maps(subject, where, views)),
        cards=tuple(card(view, subject.axis(view), columns[k], subject.names) for k, view in shown),
        card_note=note if len(shown) < len(columns) else "",
    )


def _maps(subject: Subject, where: Regions, views: dict[int, ColumnView]) -> list[Map]:
    from cobpm.views import map_view

    post, columns, names = subject.post, subject.columns, subject.names
    regions = where.rows if where.total > 1 else ()
    if len(columns) == 1:
        figure = line_figure(
            views[0], subject.axis(views[0]), columns[0], names, subject.tags, regions
        )
        return [Map(columns[0], figure)]
    maps = []
    for place, (a, b) in enumerate(combinations(list(views)[:MAP_COLUMNS], 2), start=1):
        view = map_view(
            post, (post.columns[a], post.columns[b]), *subject.sets, level=subject.level
        )
        shown = columns[a], columns[b]
        label = (
            f"Map of {shown[0]}, from left to right, and {shown[1]}, upwards: where {names[0]} or "
            f"{names[1]} is denser. The table of regions has the numbers."
        )
        axes = subject.map_axes(view, views[a], views[b])
        figure = map_figure(view, axes, shown, (a, b), regions, label, f"map-{place}")
        maps.append(Map(f"{shown[0]} and {shown[1]}", figure, frozenset(shades(view))))
    return maps

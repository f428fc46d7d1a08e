"""`post.plot`: the pictures of a posterior."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm.plots import answers, maps, overview, style
from cobpm.plots import columns as columns_
from cobpm.samples import Seen, bad, check_count
from cobpm.views import column_view, map_view, telling_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from cobpm.posterior import Posterior

ACROSS = 4  # columns side by side


class Plots:
    """Pictures of a posterior, on matplotlib (`pip install 'cobpm[plot]'`).

    Call it for an overview, or ask for one picture by its name. All draw on the axes given as
    `ax`, or make a figure, and return the axes. `first` and `second` name the two sets; they are
    only needed with more than two. Blue stands for the first set, orange for the second.

    A posterior that was loaded from a file does not have its points. `divergences`, `leaves` and
    `regions` do without; the others take them as `samples`, as `cobpm.fit` does.
    """

    def __init__(self, post: Posterior) -> None:
        self._post = post

    def __repr__(self) -> str:
        names = (name for name in vars(type(self)) if not name.startswith("_"))
        return f"plot() of a posterior, or one of {', '.join(f'plot.{name}()' for name in names)}"

    def __call__(
        self,
        first: str | None = None,
        second: str | None = None,
        *,
        level: float = 0.9,
        samples: Any = None,
    ) -> dict[str, Axes]:
        """An overview: divergences, where the sets differ, and the columns that tell most.

        Args:
            first: Name of the first set.
            second: Name of the second set.
            level: Probability that credible intervals are to hold.
            samples: The points, for a posterior from a file.

        Returns:
            The axes of a new figure: "divergences"; "where", which is `map` for several columns,
            `ratio` for one, and `regions` without the points; and "column …" for each column shown.
        """
        return overview.overview(self._post, first, second, level=level, samples=samples)

    def divergences(
        self,
        divergence: Any = answers.USUAL,
        first: str | None = None,
        second: str | None = None,
        *,
        level: float = 0.9,
        ax: Axes | None = None,
    ) -> Axes:
        """The posterior of one or several divergences, each with its median and interval.

        The post at zero is the probability that there is no difference.

        Args:
            divergence: One divergence or several; see `Posterior.draws`.
            first: Name of the first set.
            second: Name of the second set.
            level: Probability that an interval is to hold.
            ax: Where to draw.
        """
        return answers.divergences(self._post, divergence, first, second, level=level, ax=ax)

    def leaves(self, *, ax: Axes | None = None) -> Axes:
        """How many sub-regions the drawn partitions have.

        Args:
            ax: Where to draw.
        """
        return answers.leaves(self._post, ax)

    def regions(
        self,
        first: str | None = None,
        second: str | None = None,
        *,
        most: int = 8,
        level: float = 0.9,
        ax: Axes | None = None,
    ) -> Axes:
        """The regions that contribute most to the difference, in words, with the ratio in each.

        Args:
            first: Name of the first set.
            second: Name of the second set.
            most: How many regions.
            level: Probability that an interval is to hold.
            ax: Where to draw.
        """
        most = check_count(most, parameter="most", owner="plot.regions")
        return answers.regions(self._post, first, second, most=most, level=level, ax=ax)

    def map(
        self,
        columns: Sequence[str] | None = None,
        first: str | None = None,
        second: str | None = None,
        *,
        points: bool = True,
        leaves: bool = True,
        ax: Axes | None = None,
        samples: Any = None,
    ) -> Axes:
        """The ratio of the densities over two columns, in colours.

        The other columns are averaged out. Where points are too few to say, there is no colour.
        With a single column this is `ratio`.

        Args:
            columns: The column across and the one up; by default the two that differ most.
            first: Name of the first set.
            second: Name of the second set.
            points: Whether to lay points of both sets over the map, at most 500 of each.
            leaves: Whether to draw the borders of the most probable partition drawn.
            ax: Where to draw.
            samples: The points, for a posterior from a file.
        """
        if columns is None and len(self._post.columns) == 1:
            return self.ratio(None, first, second, ax=ax, samples=samples)
        view = map_view(self._post, columns, first, second, samples=samples)
        ax = style.axes(ax, 6.6, 5.2)
        return maps.ratio_map(view, ax, points=points, leaves=leaves)

    def ratio(
        self,
        column: str | None = None,
        first: str | None = None,
        second: str | None = None,
        *,
        level: float = 0.9,
        ax: Axes | None = None,
        samples: Any = None,
    ) -> Axes:
        """The ratio of the densities along one column, with its band.

        Args:
            column: Name of the column; by default the one that differs most.
            first: Name of the first set.
            second: Name of the second set.
            level: Probability that the band is to hold at each place.
            ax: Where to draw.
            samples: The points, for a posterior from a file.
        """
        view = self._views([column] if column else None, first, second, level, 1, samples)[0]
        return columns_.ratio(view, style.axes(ax, 6.4, 3.6))

    def column(
        self,
        column: str | None = None,
        first: str | None = None,
        second: str | None = None,
        *,
        level: float = 0.9,
        ax: Axes | None = None,
        samples: Any = None,
    ) -> Axes:
        """Both sets' histograms of one column, coloured by which set has more.

        The colour is strong where the interval of the ratio leaves no doubt which set is denser.
        An outer bin marked ≤ or ≥ holds all points beyond it, too.

        Args:
            column: Name of the column; by default the one that differs most.
            first: Name of the first set.
            second: Name of the second set.
            level: Probability that intervals are to hold.
            ax: Where to draw.
            samples: The points, for a posterior from a file.
        """
        view = self._views([column] if column else None, first, second, level, 1, samples)[0]
        return columns_.marginals(view, style.axes(ax, 6.0, 3.6))

    def columns(
        self,
        columns: Sequence[str] | None = None,
        first: str | None = None,
        second: str | None = None,
        *,
        most: int = 12,
        level: float = 0.9,
        ax: Any = None,
        samples: Any = None,
    ) -> NDArray[Any]:
        """Several columns as `column` draws them, those that differ most first.

        Args:
            columns: Which ones, in this order; by default those that differ most.
            first: Name of the first set.
            second: Name of the second set.
            most: How many, if `columns` does not say.
            level: Probability that intervals are to hold.
            ax: As many axes as columns, or more.
            samples: The points, for a posterior from a file.

        Returns:
            An array of the axes that were drawn on.
        """
        if ax is not None:
            given = list(np.ravel(np.asarray(ax, dtype=object)))
            most = min(most, len(given))
        most = check_count(most, parameter="most", owner="plot.columns")
        views = self._views(columns, first, second, level, most, samples)
        if ax is None:
            across = min(ACROSS, len(views))
            down = ceil(len(views) / across)
            figure, grid = style.pyplot().subplots(
                down, across, figsize=(3.1 * across + 0.6, 2.3 * down + 0.4), layout="constrained"
            )
            given = list(np.ravel(grid))
            for empty in given[len(views) :]:
                figure.delaxes(empty)
        elif len(given) < len(views):
            seen = Seen(f"{len(given)} for {len(views)} columns")
            raise bad("ax", "plot.columns", "be as many axes as columns", seen)
        for k, view in enumerate(views):
            columns_.marginals(view, given[k], legend=k == 0)
        return np.array(given[: len(views)], dtype=object)

    def _views(
        self,
        names: Sequence[str] | None,
        first: str | None,
        second: str | None,
        level: float,
        most: int,
        samples: Any,
    ) -> list[Any]:
        style.pyplot()  # before any work
        if names is None:
            return telling_columns(
                self._post, first, second, most=most, level=level, samples=samples
            )
        if isinstance(names, str):
            raise bad("columns", "plot.columns", "be a list of column names", names)
        return [
            column_view(self._post, name, first, second, level=level, samples=samples)
            for name in names
        ]

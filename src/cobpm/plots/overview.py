"""The overview: how different, where, and in which columns, on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cobpm.plots import answers, style
from cobpm.plots.columns import marginals, ratio
from cobpm.plots.maps import ratio_map
from cobpm.samples import check_level
from cobpm.views import ColumnView, map_view, telling_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cobpm.posterior import Posterior

MOST_COLUMNS = 4  # along the bottom


def overview(
    post: Posterior,
    first: str | None = None,
    second: str | None = None,
    *,
    level: float = 0.9,
    samples: Any = None,
) -> dict[str, Axes]:
    """All at a glance; see `Plots.__call__`."""
    level = check_level(level, owner="plot")
    i, j = post._pair(first, second, "plot")
    sets = (post.names[i], post.names[j])
    views: list[ColumnView] = []
    if samples is not None or post.samples is not None:
        views = telling_columns(post, *sets, most=MOST_COLUMNS, level=level, samples=samples)
    figure, found = _panels(post, [view.name for view in views])
    answers.divergences(post, first=sets[0], second=sets[1], level=level, ax=found["divergences"])
    for k, view in enumerate(views):
        marginals(view, found[f"column {view.name}"], legend=k == 0, title=len(views) > 1)
    if not views:
        answers.regions(post, *sets, level=level, ax=found["where"])
    elif len(post.columns) == 1:
        ratio(views[0], found["where"]).set_xlabel("")
        found["where"].tick_params(labelbottom=False)
    else:
        ratio_map(map_view(post, None, *sets, level=level, samples=samples), found["where"])
    figure.suptitle(_headline(post, i, j), x=0.012, ha="left", fontsize="large")
    return found


def _panels(post: Posterior, names: list[str]) -> tuple[Figure, dict[str, Axes]]:
    """A new figure with its axes by name: one layout for each of no, one and more columns."""
    columns = len(names)
    size = {0: (10.5, 4.2), 1: (10.5, 4.6)}.get(columns, (11, 7.2))
    figure = style.pyplot().figure(figsize=size, layout="constrained")
    if columns < 2:
        left, right = figure.add_gridspec(1, 2, width_ratios=(1, 1.25))
        found = {"divergences": figure.add_subplot(left)}
        below = right.subgridspec(1 + columns, 1)
        found["where"] = figure.add_subplot(below[0])
        if names:
            found[f"column {names[0]}"] = figure.add_subplot(below[1])
        return figure, found
    top, bottom = figure.add_gridspec(2, 1, height_ratios=(1.75, 1))
    left, right = top.subgridspec(1, 2, width_ratios=(1, 1.25))
    found = {"divergences": figure.add_subplot(left), "where": figure.add_subplot(right)}
    for name, place in zip(names, bottom.subgridspec(1, columns), strict=True):
        found[f"column {name}"] = figure.add_subplot(place)
    return figure, found


def _headline(post: Posterior, i: int, j: int) -> str:
    """Who is compared, and whether there is a difference at all."""
    first, second = (
        f"{style.printable(post.names[k])} ({post.model.sizes[k]:,} points)" for k in (i, j)
    )
    said = f"{first} and {second}"
    if len(post.names) == 2 and post.log_bayes_factor is not None:
        said += f":  {_probability(post.same_probability())} that they are the same"
    return said


def _probability(p: float) -> str:
    if 0.001 <= p <= 0.999:
        return f"probability {p:.2g}"
    return "probability below 0.001" if p < 0.5 else "probability above 0.999"

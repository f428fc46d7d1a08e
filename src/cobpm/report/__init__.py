"""Reports in one HTML file, which opens anywhere and needs no connection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cobpm.outputs import check_output, written_whole

try:
    import jinja2  # noqa: F401  (here, so that nobody waits for a fit to hear that it is missing)
except ImportError as error:
    raise ImportError("A report needs Jinja2: pip install 'cobpm[report]'") from error

if TYPE_CHECKING:
    from cobpm.divergences import Asked
    from cobpm.pairs import Pairwise
    from cobpm.posterior import Posterior

__all__ = ["html", "pairs_html", "write", "write_pairs"]


def write(
    post: Posterior,
    path: Any,
    *,
    level: float = 0.9,
    divergences: Asked | Iterable[Asked] | None = None,
    title: str | None = None,
    first: str | None = None,
    second: str | None = None,
    samples: Any = None,
) -> None:
    """Write a report to a file, whole or not at all.

    Args:
        post: What `compare` or `fit` returned.
        path: Where to write it, for example "report.html". A file that is there is replaced.
        level: Probability that intervals are to hold.
        divergences: One divergence or several; see `Posterior.draws`. By default those of
            `Posterior.summary`.
        title: A line above the verdict; by default it names the sets.
        first: Name of the first set. With more than two, the first two are compared by default.
        second: Name of the second set.
        samples: The points, as `fit` takes them, for a posterior that was loaded from a file.
            Without them there are no pictures of the data.
    """
    target = check_output(path, owner="write")
    page = html(
        post,
        level=level,
        divergences=divergences,
        title=title,
        first=first,
        second=second,
        samples=samples,
    )
    with written_whole(target) as beside:
        beside.write_text(page, encoding="utf-8", newline="\n")


def html(
    post: Posterior,
    *,
    level: float = 0.9,
    divergences: Asked | Iterable[Asked] | None = None,
    title: str | None = None,
    first: str | None = None,
    second: str | None = None,
    samples: Any = None,
) -> str:
    """The report as text; see `write`."""
    from cobpm.report.render import render

    return render(post, level, divergences, title, first, second, samples)


def write_pairs(pairs: Pairwise, path: Any, *, title: str | None = None) -> None:
    """Write a report on all pairs of sets to a file, whole or not at all.

    Args:
        pairs: What `pairwise` returned.
        path: Where to write it. A file that is there is replaced.
        title: A line above the rest.
    """
    target = check_output(path, owner="write_pairs")
    page = pairs_html(pairs, title=title)
    with written_whole(target) as beside:
        beside.write_text(page, encoding="utf-8", newline="\n")


def pairs_html(pairs: Pairwise, *, title: str | None = None) -> str:
    """The report on all pairs as text; see `write_pairs`."""
    from cobpm.report.pairs import render_pairs

    return render_pairs(pairs, title)

"""The report put together: what is asked for, worked out, and filled into the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from cobpm.divergences import SUMMARY, Asked
from cobpm.model import PaperModel
from cobpm.report.bars import distance_scale
from cobpm.report.how_different import divergence_rows
from cobpm.report.maps import legend
from cobpm.report.names import clean, cut, renamed, shown_names
from cobpm.report.numbers import interval, number, plain_level
from cobpm.report.page import fill, full_names, listed, tag
from cobpm.report.pictures import MAP_COLUMNS, Subject, draw
from cobpm.report.trust import checks, convergence_rows, frame_rows, settings
from cobpm.report.where import Regions, regions
from cobpm.samples import check_level
from cobpm.verdict import Verdict, percent, verdict

if TYPE_CHECKING:
    from cobpm.posterior import Posterior

STAND_INS = ("\ue000", "\ue001")  # for the names of the sets, until these can be marked up


def render(
    post: Posterior,
    level: float,
    divergences: Asked | Iterable[Asked] | None,
    title: str | None,
    first: str | None,
    second: str | None,
    samples: Any,
) -> str:
    """The whole page; see `cobpm.report.write`."""
    level = check_level(level, owner="report")
    i, j = _pair(post, first, second)
    if samples is not None:
        from cobpm.marginals import points_of

        post = replace(post, samples=points_of(post, samples, "report"))
    names, columns = shown_names(post.names), shown_names(post.columns)
    shown = renamed(post, names, columns)
    pair = names[i], names[j]
    rows = divergence_rows(shown, _asked(divergences), level, *pair)
    found = _told(post, (i, j), level)
    where = regions(shown, level, *pair)
    tags = (tag("first", pair[0]), tag("second", pair[1]))
    pictures = draw(Subject(post, (i, j), pair, tags, columns, level), where)
    title = clean(title or "") or f"{pair[0]} and {pair[1]}, compared"
    return fill(
        "report.html.jinja",
        title,
        level=plain_level(level),
        names=pair,
        first=tags[0],
        second=tags[1],
        tags=tags,
        sizes=[f"{post.model.sizes[k]:,}" for k in (i, j)],
        column_count=_count(len(columns), "column"),
        other_sets=_count(len(names) - 2, "other set") if len(names) > 2 else "",
        headline=_marked(found.headline, tags),
        sentence=_marked(found.sentence, tags),
        distance=_Range(number(found.total_variation), interval(*found.interval)),
        scale=_scale(found),
        nothing_seen=found.interval.high == 0.0,
        overlap=_overlap(found),
        same=_same(found),
        divergences=rows,
        regions=where,
        brief=(tag("first", cut(pair[0], 20)), tag("second", cut(pair[1], 20))),
        regions_caption=_caption(where),
        maps=pictures.maps,
        one_column=len(columns) == 1,
        map_note=pictures.map_note,
        map_choice=f" of the {MAP_COLUMNS} that differ most" if len(columns) > MAP_COLUMNS else "",
        legend=legend(tags, frozenset().union(*(drawn.shades for drawn in pictures.maps))),
        cards=pictures.cards,
        column_note=pictures.card_note,
        checks=[
            replace(check, texts=tuple(map(clean, check.texts)))
            for check in checks(post, i, j, where, found.kind)
        ],
        convergence=convergence_rows(post),
        frames=frame_rows(post),
        computed=_computed(post, names, columns),
        settings=settings(post),
        full_names=full_names((*names, *columns), (*post.names, *post.columns)),
    )


@dataclass(frozen=True)
class _Range:
    """A number and its interval, in words."""

    estimate: str
    interval: str


@dataclass(frozen=True)
class _Same:
    title: str
    value: str
    what: str


# --- what is asked for -------------------------------------------------------------------------


def _pair(post: Posterior, first: str | None, second: str | None) -> tuple[int, int]:
    """The numbers of the two sets; of more than two, the first two by default."""
    if first is None and second is None and len(post.names) > 2:
        return 0, 1
    return post._pair(first, second, "report")


def _asked(divergences: Asked | Iterable[Asked] | None) -> list[Asked]:
    if divergences is None:
        return list(SUMMARY)
    if isinstance(divergences, str) or not isinstance(divergences, Iterable):
        return [divergences]
    return list(divergences)


# --- the verdict -------------------------------------------------------------------------------


def _told(post: Posterior, pair: tuple[int, int], level: float) -> Verdict:
    """The verdict, with stand-ins for the names, which can be found in it whatever they are."""
    names = list(post.names)
    for k, stand_in in zip(pair, STAND_INS, strict=True):
        names[k] = stand_in
    return verdict(replace(post, names=tuple(names)), *STAND_INS, level)


def _marked(text: str, tags: tuple[Markup, Markup]) -> Markup:
    """A text with the names of the sets in place of the stand-ins."""
    written = str(escape(text))
    for stand_in, name in zip(STAND_INS, tags, strict=True):
        written = written.replace(stand_in, str(name))
    return Markup(written)


def _scale(found: Verdict) -> Markup:
    low, high = found.interval
    words = (number(found.total_variation, 2), "0, the same", "1, nothing in common")
    return distance_scale(low, found.total_variation, high, words)


def _overlap(found: Verdict) -> _Range:
    low, high = found.interval
    ends = f"{percent(1 - high)} to {percent(1 - low)}" if high > 0 else "no difference seen"
    return _Range(percent(1 - found.total_variation), ends)


def _same(found: Verdict) -> _Same:
    if found.same_probability is not None:
        what = "Probability that both share one distribution, beginning with even odds."
        return _Same("One distribution", percent(found.same_probability), what)
    what = "How often rows shuffled between the two look at least this different."
    assert found.chance is not None
    return _Same("By chance", percent(found.chance), what)


# --- words -------------------------------------------------------------------------------------


def _count(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'s' * (count != 1)}"


def _caption(where: Regions) -> str:
    if where.total > len(where.rows):
        return (
            f"The {len(where.rows)} of {where.total:,} regions that contribute most to the "
            f"difference: together {percent(where.covered)} of it"
        )
    return f"The {where.total} regions of the most probable partition, by what they contribute"


def _computed(
    post: Posterior, names: tuple[str, ...], columns: tuple[str, ...]
) -> list[tuple[str, str]]:
    about, report = post.provenance, post.report
    given = about.get("settings", {})
    sizes = listed(f"{name} ({size:,})" for name, size in zip(names, post.model.sizes, strict=True))
    model = "co-BPM as published" if isinstance(post.model, PaperModel) else "the ratio model"
    rows = [
        ("Sets", sizes),
        ("Columns", listed(columns)),
        ("Data (SHA-256)", about.get("data_sha256", "unknown")),
        ("Model", f"{model}, {post.leaves.mean():.1f} sub-regions on average"),
        ("Engine", f"{report.engine}: {report.reason}"),
        ("Draws", f"{len(post.partitions):,}"),
        ("Seed", given.get("seed", "unknown")),
        ("Computed", str(about.get("created", "unknown")).replace("T", " ")),
        ("cobpm", about.get("cobpm", "unknown")),
        ("Python, NumPy", f"{about.get('python', 'unknown')}, {about.get('numpy', 'unknown')}"),
        ("Platform", about.get("platform", "unknown")),
    ]
    return [(name, clean(str(value))) for name, value in rows]

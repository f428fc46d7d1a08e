"""The work of `cobpm compare`: read, fit, say."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console

import cobpm
from cobpm import divergences
from cobpm.cli.output import Outputs, as_csv, as_json, console, progress, say, table
from cobpm.cli.streamed import must_stream, streamed
from cobpm.diagnostics import ConvergenceWarning
from cobpm.divergences import Divergence
from cobpm.files import read_table
from cobpm.posterior import Posterior
from cobpm.progress import Progress
from cobpm.regions import region_columns
from cobpm.samples import Samples, check_level
from cobpm.sets import Choice, from_files, from_groups, from_row
from cobpm.sketched import Sketched
from cobpm.verdict import Verdict, percent, verdict

DIVERGENCES = ("tv", "hellinger", "kl", "reverse_kl")
SHOWN_REGIONS = 3


@dataclass(frozen=True)
class Row:
    """A divergence with its estimate and interval."""

    name: str
    label: str
    read_out: str
    estimate: float
    low: float
    high: float

    @classmethod
    def of(cls, post: Posterior, one: Divergence, level: float) -> Row:
        """Read a divergence off."""
        read_out = post.read_out_of(one)
        estimate = post.estimate(one, read_out=read_out)
        return cls(one.name, one.label, read_out, estimate, *post.interval(one, level))


def run(
    *,
    files: tuple[str, ...],
    json_file: str | None,
    csv_file: str | None,
    report: str | None,
    plot: str | None,
    quiet: bool,
    divergence: tuple[str, ...],
    level: float,
    model: str,
    engine: str,
    bounds: Any,
    draws: int,
    seed: int,
    stream: bool,
    **split: Any,
) -> None:
    """Compare two sets from files; see the command's help."""
    outputs = Outputs(files, {"json": json_file, "csv": csv_file, "report": report, "plot": plot})
    page = None if report is None else import_module("cobpm.report")
    level = check_level(level, owner="compare")
    asked = [divergences.parse(name, "compare") for name in divergence or DIVERGENCES]
    began = perf_counter()
    with progress(quiet) as told, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # they are printed below
        if len(files) == 2 and must_stream(files, stream):
            choice = Choice(split["columns"], split["exclude"], split["missing"])
            samples: Samples | Sketched = streamed(files, choice, bounds, told)
        else:
            samples = _samples(files, told, **split)
        post = cobpm.fit(
            samples,
            model=model,
            engine=engine,
            bounds=None if isinstance(samples, Sketched) else bounds,
            draws=draws,
            rng=seed,
            progress=told,
        )
        told("reading the posterior", 0.0)
        rows = [Row.of(post, one, level) for one in {one.name: one for one in asked}.values()]
        found = verdict(post, level=level)
        regions = region_columns(post, level, (0, 1))
        seconds = perf_counter() - began
        if "plot" in outputs.paths:
            told("drawing a picture", 0.0)
            outputs.draw(post.plot())
        if page is not None:
            told("writing the report", 0.0)
            names = [row.name for row in rows] if divergence else None
            page.write(post, outputs.paths["report"], level=level, divergences=names)
    outputs.write("json", as_json(_everything(post, found, rows, regions, level)))
    outputs.write("csv", _as_csv(rows, level))
    if not quiet and not outputs.piped:
        _show(console(), post, found, rows, regions, level, seconds)


def _samples(
    files: tuple[str, ...],
    told: Progress,
    *,
    split_by: str | None,
    between: tuple[str, str] | None,
    split_half: bool,
    split_at: float | None,
    columns: tuple[str, ...],
    exclude: tuple[str, ...],
    missing: str,
) -> Samples:
    choice = Choice(columns, exclude, missing)
    if len(files) == 2:
        return from_files(files, choice, lambda path: told(f"reading {path}", 0.0))
    told(f"reading {files[0]}", 0.0)
    whole = read_table(files[0])
    if split_by is not None:
        return from_groups(whole, split_by, choice, option="split-by", between=between or None)
    return from_row(whole, 0.5 if split_half or split_at is None else split_at, choice)


# --- in words ------------------------------------------------------------------------------------


def _show(
    out: Console,
    post: Posterior,
    found: Verdict,
    rows: list[Row],
    regions: dict[str, Any],
    level: float,
    seconds: float,
) -> None:
    sizes = " and ".join(
        f"{name} ({size:,} row{'s' * (size != 1)})"
        for name, size in zip(post.names, post.model.sizes, strict=True)
    )
    used = post.domain.d
    say(out, f"{sizes}, {used} column{'s' * (used != 1)}")
    out.print()
    say(out, f"{found.headline}.", "bold")
    say(out, found.sentence)
    out.print()
    table(
        out,
        f"Divergence from {post.names[0]} to {post.names[1]}",
        ["divergence", "estimate", f"{100 * level:.6g}% interval"],
        [(r.label, f"{r.estimate:.3f}", f"{r.low:.3f} – {r.high:.3f}") for r in rows],
    )
    _show_regions(out, post, found, regions)
    for warning in post.report.warnings:
        say(out, f"Warning: {warning}", "yellow")
    for notice in post.notices:
        say(out, f"Notice: {notice}")
    say(out, f"{_engine(post)}, {seconds:.1f} s.", "dim")


def _show_regions(out: Console, post: Posterior, found: Verdict, regions: dict[str, Any]) -> None:
    """The regions that contribute most, unless there is nothing to show."""
    if found.kind == "same" or len(regions["where"]) < 2:
        return
    sizes = dict(zip(post.names, post.model.sizes, strict=True))
    # Of the largest shares, those whose densities differ for sure; all if there are none.
    sure = np.flatnonzero(regions["log_ratio_low"] * regions["log_ratio_high"] > 0.0)
    chosen = sure if len(sure) else np.arange(len(regions["where"]))
    shown = [
        (
            regions["where"][k],
            *(_share(regions[f"points_{name}"][k], size) for name, size in sizes.items()),
            _more_in(post.names, *(regions[f"log_ratio{end}"][k] for end in ("_low", "_high"))),
        )
        for k in chosen[:SHOWN_REGIONS]
    ]
    title = "Where they differ most" if found.kind == "different" else "Where they may differ most"
    out.print()
    table(out, f"{title}, by share of rows", ["where", *sizes, "denser"], shown)


def _share(rows: int, size: int) -> str:
    return "none" if rows == 0 else "all" if rows == size else percent(rows / size)


def _more_in(names: tuple[str, ...], low: float, high: float) -> str:
    """The ratio of the densities between the ends of its interval, as "a, 3 to 5 ×"."""
    if low + high < 0:
        names, low, high = names[::-1], -high, -low
    least, most = (math.exp(min(end, 700.0)) for end in (low, high))
    if most > 100 * least:  # nobody knows: one of the two has hardly any rows there
        return f"{names[0]}, over {_round(least)} ×"
    return f"{names[0]}, {_round(least)} to {_round(most)} ×"


def _round(value: float) -> str:
    """Two digits, "1.0" among them."""
    if value < 9.95:
        return f"{value:.1f}"
    return f"{value:.2g}" if value < 99.5 else f"{float(f'{value:.2g}'):,.0f}"


def _engine(post: Posterior) -> str:
    kind = "draws of chains" if post.report.convergence else "independent draws"
    return (
        f"Engine '{post.report.engine}': {len(post.partitions):,} {kind}, "
        f"{post.leaves.mean():.1f} sub-regions on average"
    )


# --- for machines --------------------------------------------------------------------------------


def _everything(
    post: Posterior, found: Verdict, rows: list[Row], regions: dict[str, Any], level: float
) -> dict[str, Any]:
    """What a program would want to know."""
    first, _ = post.names
    return {
        "verdict": {
            "kind": found.kind,
            "headline": found.headline,
            "sentence": found.sentence,
            "same_probability": found.same_probability,
            "chance": found.chance,
        },
        "sets": [
            {"name": name, "rows": size}
            for name, size in zip(post.names, post.model.sizes, strict=True)
        ],
        "columns": [
            {"name": name, "kind": post.domain.kind(k), "used": k in post.domain.active}
            for k, name in enumerate(post.columns)
        ],
        "level": level,
        "divergences": [vars(row) for row in rows],
        "regions": [
            {
                "where": regions["where"][k],
                "masses": {name: regions[f"mass_{name}"][k] for name in post.names},
                "rows": {name: regions[f"points_{name}"][k] for name in post.names},
                "log_ratio": regions["log_ratio"][k],
                "log_ratio_low": regions["log_ratio_low"][k],
                "log_ratio_high": regions["log_ratio_high"][k],
                "p_first_denser": regions[f"p_{first}_denser"][k],
            }
            for k in range(len(regions["where"]))
        ],
        "engine": post.report.engine,
        "warnings": list(post.report.warnings),
        "notices": list(post.notices),
        "provenance": dict(post.provenance),
    }


def _as_csv(rows: list[Row], level: float) -> str:
    header = "divergence", "estimate", "low", "high", "level"
    return as_csv(header, [(r.name, r.estimate, r.low, r.high, level) for r in rows])

"""The work of `cobpm pairwise`."""

from __future__ import annotations

import warnings
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
from cobpm.files import read_table
from cobpm.pairs import Pairwise
from cobpm.progress import Progress
from cobpm.samples import Samples, check_count
from cobpm.sets import Choice, from_files, from_groups
from cobpm.sketched import Sketched
from cobpm.verdict import verdict

MOST_IN_MATRIX = 8  # sets, beyond which the matrix does not fit into a terminal
VERDICTS = {"different": "different", "same": "no difference found", "unclear": "unclear"}


def run(
    *,
    files: tuple[str, ...],
    group_by: str | None,
    columns: tuple[str, ...],
    exclude: tuple[str, ...],
    missing: str,
    divergence: str,
    symmetric: bool,
    partition: str,
    checkpoint: str | None,
    top: int,
    level: float,
    model: str,
    engine: str,
    bounds: Any,
    draws: int,
    seed: int,
    stream: bool,
    quiet: bool,
    json_file: str | None,
    csv_file: str | None,
    report: str | None,
    plot: str | None,
) -> None:
    """Compare all pairs of sets from files; see the command's help."""
    outputs = Outputs(files, {"json": json_file, "csv": csv_file, "report": report, "plot": plot})
    page = None if report is None else import_module("cobpm.report")
    top = check_count(top, minimum=0, parameter="top", owner="pairwise")
    asked = divergences.parse(divergence, "pairwise")
    began = perf_counter()
    with progress(quiet) as told, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # they are printed below
        choice = Choice(columns, exclude, missing)
        if group_by is None and must_stream(files, stream):
            samples: Samples | Sketched = streamed(files, choice, bounds, told)
            bounds = None  # they went into the grid
        else:
            samples = _samples(files, group_by, choice, told)
        pairs = cobpm.pairwise(
            samples,
            asked.name,
            partition=partition,
            level=level,
            symmetric=symmetric,
            draws=draws,
            rng=seed,
            progress=told,
            checkpoint=checkpoint,
            model=model,
            engine=engine,
            bounds=bounds,
        )
        listed = _listed(pairs)
        kinds = _verdicts(pairs, listed[:top], level)
        seconds = perf_counter() - began
        if "plot" in outputs.paths:
            told("drawing a picture", 0.0)
            outputs.draw(pairs.plot())
        if page is not None:
            told("writing the report", 0.0)
            page.write_pairs(pairs, outputs.paths["report"])
    outputs.write("json", as_json(_everything(pairs, samples, listed)))
    outputs.write("csv", as_csv(("first", "second", "estimate", "low", "high"), listed))
    if not quiet and not outputs.piped:
        _show(console(), pairs, samples, asked.label, listed[:top], kinds, seconds)


def _samples(
    files: tuple[str, ...], group_by: str | None, choice: Choice, told: Progress
) -> Samples:
    if group_by is None:
        return from_files(files, choice, lambda path: told(f"reading {path}", 0.0))
    told(f"reading {files[0]}", 0.0)
    return from_groups(read_table(files[0]), group_by, choice)


def _listed(pairs: Pairwise) -> list[tuple[str, str, float, float, float]]:
    """A row per pair, the most different ones first."""
    i, j = np.nonzero(~np.eye(len(pairs.names), dtype=bool))
    if pairs.symmetric:
        i, j = np.triu_indices(len(pairs.names), 1)
    order = np.argsort(-pairs.matrix[i, j], kind="stable")
    return [
        (
            pairs.names[a],
            pairs.names[b],
            float(pairs.matrix[a, b]),
            float(pairs.low[a, b]),
            float(pairs.high[a, b]),
        )
        for a, b in zip(i[order], j[order], strict=True)
    ]


def _verdicts(pairs: Pairwise, listed: list[Any], level: float) -> list[str] | None:
    """What each listed pair comes to, where that takes no further work."""
    if pairs.partition != "joint":
        return None
    found = []
    for first, second, *_ in listed:
        post = pairs.posterior(first, second)
        found.append(VERDICTS[verdict(post, first, second, level).kind])
    return found


def _show(
    out: Console,
    pairs: Pairwise,
    samples: Samples | Sketched,
    label: str,
    listed: list[Any],
    kinds: list[str] | None,
    seconds: float,
) -> None:
    sets = len(pairs.names)
    count = sum(samples.sizes)
    say(out, f"{sets} sets, {count:,} rows, {samples.d} column{'s' * (samples.d != 1)}")
    out.print()
    if sets <= MOST_IN_MATRIX:
        rows = [
            (name, *("" if a == b else f"{value:.3f}" for b, value in enumerate(pairs.matrix[a])))
            for a, name in enumerate(pairs.names)
        ]
        title = label[0].upper() + label[1:]
        title += "" if pairs.symmetric else ", from the row to the column"
        table(out, title, ["", *pairs.names], rows)
        out.print()
    if listed:
        more = [] if kinds is None else ["verdict"]
        shown = [
            (
                f"{first} {'–' if pairs.symmetric else '→'} {second}",
                f"{estimate:.3f}",
                f"{low:.3f} – {high:.3f}",
                *([] if kinds is None else [kinds[k]]),
            )
            for k, (first, second, estimate, low, high) in enumerate(listed)
        ]
        all_of_them = sets * (sets - 1) // (2 if pairs.symmetric else 1)
        title = "All pairs" if len(listed) == all_of_them else f"{len(listed)} of {all_of_them:,}"
        title += (
            ", most different first" if len(listed) == all_of_them else " pairs, the most different"
        )
        heading = ["pair", "estimate", f"{100 * pairs.level:.6g}% interval", *more]
        table(out, title, heading, shown)
    for warning in pairs.warnings:
        say(out, f"Warning: {warning}", "yellow")
    for notice in pairs.notices:
        say(out, f"Notice: {notice}")
    shared = "one posterior for all sets" if pairs.partition == "joint" else "a posterior per pair"
    say(out, f"From {shared}, {seconds:.1f} s.", "dim")


def _everything(pairs: Pairwise, samples: Samples | Sketched, listed: list[Any]) -> dict[str, Any]:
    """What a program would want to know."""
    names = ("first", "second", "estimate", "low", "high")
    return {
        "divergence": pairs.divergence,
        "read_out": pairs.read_out,
        "level": pairs.level,
        "symmetric": pairs.symmetric,
        "partition": pairs.partition,
        "sets": [
            {"name": name, "rows": size}
            for name, size in zip(samples.names, samples.sizes, strict=True)
        ],
        "columns": list(samples.columns),
        "pairs": [dict(zip(names, row, strict=True)) for row in listed],
        "warnings": list(pairs.warnings),
        "notices": list(pairs.notices),
        "cobpm": cobpm.__version__,
    }

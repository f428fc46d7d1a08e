"""The work of `cobpm monitor`."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import cobpm
from cobpm import divergences
from cobpm.cli.output import Outputs, as_csv, console, progress, say, table
from cobpm.drift import Drift, Step
from cobpm.verdict import percent

LONGEST = 48  # characters of a region in the table


def run(
    *,
    reference: str,
    steps: tuple[str, ...],
    log: str | None,
    csv_file: str | None,
    plot: str | None,
    quiet: bool,
    bounds: Any,
    **given: Any,
) -> bool:
    """Compare steps with a reference; say whether one lies above the threshold."""
    outputs = Outputs((reference, *steps), {"log": log, "csv": csv_file, "plot": plot})
    began = perf_counter()
    try:
        with progress(quiet) as told:
            drift = cobpm.monitor(
                reference,
                list(steps),
                log=log,
                bounds=None if bounds == "ranks" else bounds,
                progress=told,
                **given,
            )
            if "plot" in outputs.paths:
                told("drawing a picture", 1.0)
                outputs.draw(drift.plot())
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "" if log is None else f"The steps that are done are in '{log}'."
        ) from None
    frame = drift.to_frame().reset_index()
    outputs.write("csv", as_csv(list(frame.columns), frame.itertuples(index=False)))
    if not quiet and not outputs.piped:
        _show(drift, perf_counter() - began)
    return bool(drift.above)


def _show(drift: Drift, seconds: float) -> None:
    out = console()
    label = divergences.parse(drift.divergence, "monitor").label
    rows = [
        (
            one.step,
            f"{one.rows:,}",
            f"{one.estimate:.3f}",
            f"{one.low:.3f} – {one.high:.3f}",
            *_where(one),
            "above" if drift.is_above(one) else "",
        )
        for one in drift.steps
    ]
    heading = ["step", "rows", "estimate", f"{100 * drift.level:.6g}% interval"]
    title = label[0].upper() + label[1:] + " from the reference"
    table(out, title, [*heading, "moved most", "share of rows", ""], rows)
    for notice in drift.notices:
        say(out, f"Notice: {notice}")
    for one in drift.steps:
        if one.beyond > one.rows / 100:
            share = percent(one.beyond / one.rows)
            say(out, f"Notice: {share} of the rows of '{one.step}' lie beyond the reference.")
        if one.dropped:
            say(out, f"Notice: {one.dropped:,} rows of '{one.step}' had missing values.")
    if drift.threshold is not None:
        above = len(drift.above)
        told = (
            "no interval lies"
            if not above
            else f"{above} of {len(rows)} intervals {'lies' if above == 1 else 'lie'}"
        )
        say(out, f"Threshold {drift.threshold:g}: {told} above it.", "bold" if above else "")
    say(out, f"{seconds:.1f} s.", "dim")


def _where(one: Step) -> tuple[str, str]:
    if not one.where:
        return "", ""
    short = one.where if len(one.where) <= LONGEST else f"{one.where[: LONGEST - 1]}…"
    return short, f"{percent(one.share_reference)} → {percent(one.share_step)}"

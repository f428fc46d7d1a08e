"""Drift over time: how far each step lies from a reference, where it moved, and a log of it all.

Every step is compared with the reference by itself, on the reference's grid and with the same seed,
so its numbers do not depend on the other steps. With a log, steps that are in it already are read
from there: a nightly job adds one line a night.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cobpm
from cobpm import divergences
from cobpm.counting import sketch_files
from cobpm.diagnostics import ConvergenceWarning
from cobpm.drift_log import DriftLog
from cobpm.grid import Grid
from cobpm.outputs import check_output
from cobpm.posterior import Posterior
from cobpm.progress import Progress, shown
from cobpm.regions import region_columns
from cobpm.samples import InputError, Seen, bad, check_count, check_level
from cobpm.sets import Choice, set_names
from cobpm.sketch import MAX_CELLS, Sketch
from cobpm.streams import files_in

if TYPE_CHECKING:
    import pandas as pd

REFERENCE, STEP = "reference", "step"
OWNER = "monitor"


@dataclass(frozen=True)
class Step:
    """How far a step lies from the reference.

    Attributes:
        step: Its name.
        rows: Rows that were counted.
        estimate: The divergence from the reference to the step.
        low: Lower end of its interval.
        high: Upper end.
        same_probability: Probability that both share one distribution; None where the model has no
            place for equality.
        where: The region that contributes most, of those whose densities surely differ; empty if
            there is none.
        share_reference: Share of the reference's rows in it.
        share_step: Share of the step's rows in it.
        beyond: Rows of the step beyond the ends of the reference's grid.
        dropped: Rows of the step with missing values.
        reference: Fingerprint of the reference.
        settings: How it was computed.
        source: What the step was worked out from.
        at: When it was worked out.
    """

    step: str
    rows: int
    estimate: float
    low: float
    high: float
    same_probability: float | None
    where: str
    share_reference: float
    share_step: float
    beyond: int
    dropped: int
    reference: str
    settings: Mapping[str, Any]
    source: str
    at: str

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Step:
        """A step from a line of a log, which may hold more.

        Raises:
            ValueError: If something is missing or of another kind.
        """
        for one in fields(cls):
            if one.name not in record:
                raise ValueError(f"it has no '{one.name}'")
            if not _is_of(record[one.name], str(one.type)):
                shown = repr(record[one.name])[:40]
                raise ValueError(f"'{one.name}' cannot be {shown}")
        return cls(**{one.name: record[one.name] for one in fields(cls)})


def _is_of(value: Any, kind: str) -> bool:
    """Whether a value of JSON is of the kind that a step has there."""
    if kind == "str":
        return isinstance(value, str)
    if kind.startswith("Mapping"):
        return isinstance(value, dict)
    if value is None:
        return "None" in kind
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) and 0 <= value < 2**63 if kind == "int" else not isnan(value)


@dataclass(frozen=True)
class Drift:
    """What `monitor` found.

    Attributes:
        steps: The steps that were asked for, in this order.
        divergence: What was estimated.
        level: Probability that intervals are to hold.
        threshold: The divergence that is too much; None if there is none.
        history: All steps of the log with the same reference and settings, and `steps`.
        notices: What happened to the columns of the reference.
    """

    steps: tuple[Step, ...]
    divergence: str
    level: float
    threshold: float | None = None
    history: tuple[Step, ...] = field(default=(), repr=False)
    notices: tuple[str, ...] = ()

    @property
    def above(self) -> tuple[str, ...]:
        """Names of the steps whose whole interval lies above the threshold."""
        return tuple(one.step for one in self.steps if self.is_above(one))

    def is_above(self, one: Step) -> bool:
        """Whether a step's whole interval lies above the threshold."""
        return self.threshold is not None and one.low > self.threshold

    def to_frame(self) -> pd.DataFrame:
        """A table with a row per step."""
        import pandas as pd

        shown = [one.name for one in fields(Step)][1:11]
        rows = [{name: getattr(one, name) for name in shown} for one in self.steps]
        found = pd.DataFrame(rows, columns=shown, index=[one.step for one in self.steps])
        found["above"] = [self.is_above(one) for one in self.steps]
        return found.rename_axis("step")

    def plot(self, ax: Any = None) -> Any:
        """Draw all steps of the log and these, with their intervals and the threshold.

        Args:
            ax: Axes to draw on; None for new ones.

        Returns:
            The axes.
        """
        from cobpm.drift_plot import draw

        return draw(self, ax)


def monitor(
    reference: Any,
    steps: Any,
    divergence: Any = "tv",
    *,
    threshold: float | None = None,
    level: float = 0.9,
    log: Any = None,
    model: str = "ratio",
    engine: str = "auto",
    draws: int = 1000,
    seed: int = 1,
    bounds: Any = None,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    missing: str = "drop",
    max_cells: int = MAX_CELLS,
    progress: bool | Progress = False,
) -> Drift:
    """Compare one step after another with a reference.

    Args:
        reference: A path of a file, a folder of files or a sketch; a `Sketch`; or an array or data
            frame. Its rows choose the grid that all steps are counted on.
        steps: A list of such, or a mapping from names to such.
        divergence: What to estimate; see `Posterior.draws`.
        threshold: The divergence that is too much. A step is above it if its whole interval is.
        level: Probability that intervals are to hold.
        log: A file of JSON lines. A line is added for each step when it is done; steps that are in
            it, with the same reference and settings, are not worked out again.
        model: See `compare`.
        engine: See `compare`.
        draws: Posterior draws of each comparison.
        seed: Of the draws, the same for every step.
        bounds: Limits of the columns for a grid of equal cells.
        columns: Columns to use; those that hold numbers if there are none.
        exclude: Columns to leave out.
        missing: "drop" rows with missing values, or treat them as an "error".
        max_cells: Most distinct cells of the reference and a step together.
        progress: See `compare`.
    """
    level = check_level(level, owner=OWNER)
    threshold = _check_threshold(threshold)
    name = divergences.parse(divergence, OWNER).name
    given = _named(steps)
    path = None if log is None else check_output(log, parameter="log", owner=OWNER)
    kept = DriftLog(path, Step.from_record)
    kept.records()  # a file that is no log is refused before any work
    settings: dict[str, Any] = {
        "divergence": name,
        "level": level,
        "model": model,
        "engine": engine,
        "draws": check_count(draws, parameter="draws", owner=OWNER),
        "seed": check_count(seed, minimum=0, parameter="seed", owner=OWNER),
        "missing": missing,
        "max_cells": check_count(max_cells, parameter="max_cells", owner=OWNER),
    }
    with shown(progress) as told:
        report = told or (lambda stage, fraction: None)
        choice = Choice(tuple(columns), tuple(exclude), missing)
        base, notices = _sketch(REFERENCE, reference, choice, None, bounds, max_cells, report)
        print_ = fingerprint(base)
        history = {
            one.step: one
            for one in kept.records()
            if one.reference == print_ and one.settings == settings
        }
        found = []
        for k, (step, rows) in enumerate(given.items()):
            source = _source(rows)
            if isinstance(rows, str | os.PathLike):
                known = history.get(step)
            else:
                rows, _ = _sketch(STEP, rows, choice, base.grid, None, max_cells, report)
                source, known = fingerprint(rows), history.get(step)
            if known is None or known.source != source:
                stage = _Part(report, k, len(given), step)
                sketch, _ = _sketch(STEP, rows, choice, base.grid, None, max_cells, stage)
                known = _step(step, base, sketch, settings, print_, source, stage)
                line = asdict(known) | _judged(known, threshold)
                known = kept.add(line, partial(_says_the_same, known)) or known
            history[step] = known
            found.append(known)
    return Drift(tuple(found), name, level, threshold, tuple(history.values()), notices)


def _says_the_same(one: Step, other: Step) -> bool:
    """Whether two steps were worked out from the same rows in the same way."""
    what = ("step", "reference", "settings", "source")
    return all(getattr(one, name) == getattr(other, name) for name in what)


def _judged(one: Step, threshold: float | None) -> dict[str, Any]:
    above = None if threshold is None else one.low > threshold
    return {"threshold": threshold, "above": above, "cobpm": cobpm.__version__}


def _check_threshold(threshold: Any) -> float | None:
    if threshold is None:
        return None
    try:
        found = float(threshold)
    except (TypeError, ValueError):
        found = -1.0
    if not 0.0 <= found < float("inf"):
        raise bad("threshold", OWNER, "be a number that is not negative", threshold)
    return found


def _named(steps: Any) -> dict[str, Any]:
    """Steps by their names; files are called by what their names begin with."""
    if isinstance(steps, Mapping):
        found = {str(name): rows for name, rows in steps.items()}
    elif isinstance(steps, list | tuple):
        names = [str(k + 1) for k in range(len(steps))]
        if steps and all(isinstance(step, str | os.PathLike) for step in steps):
            names = set_names([Path(step) for step in steps])
        found = dict(zip(names, steps, strict=True))
    else:
        seen, way_out = Seen(type(steps).__name__), "Put a single step into a list."
        raise bad("steps", OWNER, "be a list or a mapping", seen, way_out)
    if not found or len(found) < len(steps):
        rule, seen = "be one or more, with names that differ", Seen(f"{len(steps)} of them")
        raise bad("steps", OWNER, rule, seen)
    return found


def _sketch(
    name: str,
    rows: Any,
    choice: Choice,
    grid: Grid | None,
    bounds: Any,
    max_cells: int,
    told: Progress,
) -> tuple[Sketch, tuple[str, ...]]:
    """Rows of any kind, counted, and what to say about them."""
    given: dict[str, Any] = {"grid": grid, "bounds": bounds, "max_cells": max_cells}
    if isinstance(rows, str | os.PathLike):
        return sketch_files({name: os.fspath(rows)}, choice, told=told, **given)
    if not isinstance(rows, Sketch):
        return Sketch.of({name: rows}, missing=choice.missing, **given), ()
    if len(rows.sets) != 1:
        raise bad(name, OWNER, "be a sketch of one set", Seen(f"{len(rows.sets)} sets"))
    if grid is not None:
        grid.check_same(rows.grid, OWNER)
    return rows.rename(name), ()


def fingerprint(sketch: Sketch) -> str:
    """A hash of the cells of a sketch of one set, where they lie, and what they hold."""
    (counted,) = sketch.sets.values()
    found = hashlib.sha256(json.dumps([sketch.columns, sketch.bits]).encode())
    for part in (*sketch.grid.cuts, counted.keys, counted.counts):
        found.update(part.data)
    return found.hexdigest()[:32]


def _source(path: Any) -> str:
    """What tells whether files have changed: their names, sizes and times."""
    if not isinstance(path, str | os.PathLike):
        return ""
    try:
        about = [(one, os.stat(one)) for one in files_in([os.fspath(path)])]
    except FileNotFoundError:
        way_out = f"Relative paths start from '{Path.cwd()}'."
        raise InputError(f"The file '{path}' does not exist. {way_out}") from None
    told = [(Path(one).name, stat.st_size, stat.st_mtime_ns) for one, stat in about]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]


class _Part:
    """Progress of one step among several."""

    def __init__(self, told: Progress, k: int, count: int, name: str) -> None:
        self.told, self.k, self.count, self.name = told, k, count, name

    def __call__(self, stage: str, fraction: float) -> None:
        self.told(f"{self.name}: {stage}", (self.k + fraction) / self.count)


def _step(
    name: str,
    base: Sketch,
    sketch: Sketch,
    settings: Mapping[str, Any],
    reference: str,
    source: str,
    told: Progress,
) -> Step:
    both = Sketch.merge([base, sketch]).select(REFERENCE, STEP)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        post = cobpm.fit(
            both,
            model=settings["model"],
            engine=settings["engine"],
            draws=settings["draws"],
            rng=settings["seed"],
            progress=told,
        )
    one = divergences.parse(settings["divergence"], OWNER)
    read_out = post.read_out_of(one)
    low, high = post.interval(one, settings["level"])
    has_place = post.log_bayes_factor is not None
    counted = sketch.sets[STEP]
    return Step(
        name,
        counted.rows,
        float(post.estimate(one, read_out=read_out)),
        float(low),
        float(high),
        float(post.same_probability()) if has_place else None,
        *_moved(post, settings["level"]),
        counted.beyond,
        counted.dropped,
        reference,
        dict(settings),
        source,
        datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _moved(post: Posterior, level: float) -> tuple[str, float, float]:
    """The region that contributes most, of those that surely differ, and the shares of rows."""
    regions = region_columns(post, level, (0, 1))
    for k in _surely(regions):
        rows = [int(regions[f"points_{name}"][k]) for name in (REFERENCE, STEP)]
        first, second = (n / size for n, size in zip(rows, post.model.sizes, strict=True))
        return str(regions["where"][k]), float(first), float(second)
    return "", 0.0, 0.0


def _surely(regions: Mapping[str, Any]) -> Iterator[int]:
    for k in range(len(regions["where"])):
        if regions["log_ratio_low"][k] > 0 or regions["log_ratio_high"][k] < 0:
            yield k

"""The answer: draws of partitions and masses, and everything that is read off them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit

from cobpm import divergences
from cobpm.arrays import FloatArray, IntArray
from cobpm.divergences import Asked, Divergence
from cobpm.domain import Domain
from cobpm.engines.fit import Fit, Report
from cobpm.engines.moments import Moments
from cobpm.engines.ratio_moments import RatioMoments
from cobpm.frames import Frame
from cobpm.model import PaperModel
from cobpm.partitions import Partitions
from cobpm.ratio_model import RatioModel
from cobpm.samples import Samples, Seen, as_points, bad, check_choice, check_level
from cobpm.sketched import Sketched
from cobpm.threads import thread_count

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from cobpm.plots import Plots

READ_OUTS = ("mean", "median", "plug")


class Interval(NamedTuple):
    """A credible interval with equal tails."""

    low: float
    high: float


class Band(NamedTuple):
    """Estimates at several points, each with a credible interval."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known about the samples after seeing them.

    Attributes:
        names: Names of the sample sets.
        columns: Names of all columns.
        frames: The maps of the columns onto the unit cube that partitions were drawn in: one, or
            several with the ratio model.
        frame_starts: Where the draws in each frame begin; one entry more than frames.
        model: Prior and likelihood.
        partitions: The draws of partitions, one frame after another.
        masses: Mass of each set in each leaf of each partition, (all leaves, S).
        report: The engine, why it was chosen, and how far to trust it.
        leaf_probabilities: P(l | data) with the number of sub-regions l as the index, where the
            engine knows it.
        log_evidence: Log marginal likelihood of the points in the unit cube, where the engine knows
            it.
        notices: What happened to the data on the way.
        provenance: Version, settings, sizes and fingerprint of the data.
        log_bayes_factor: With the ratio model, log of the probability of the labels if the sets
            differ over that if they share one distribution.
        samples: The points themselves, for pictures; None if the posterior was loaded from a file
            or is of sketches.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    frames: tuple[Frame, ...]
    frame_starts: IntArray
    model: PaperModel | RatioModel
    partitions: Partitions
    masses: FloatArray
    report: Report
    leaf_probabilities: FloatArray | None
    log_evidence: float | None
    notices: tuple[str, ...]
    provenance: Mapping[str, Any]
    log_bayes_factor: float | None = None
    samples: Samples | None = field(default=None, repr=False)
    _moments: Moments | RatioMoments | None = field(default=None, repr=False)
    _exact_means: dict[str, float] = field(default_factory=dict, repr=False)

    @classmethod
    def from_fit(
        cls,
        samples: Samples | Sketched,
        frames: Sequence[Frame],
        model: PaperModel | RatioModel,
        fit: Fit,
        seed: int,
        provenance: Mapping[str, Any],
    ) -> Posterior:
        """Add masses to an engine's partitions."""
        draws = fit.frame_draws or (len(fit.partitions),)
        said = dict.fromkeys(notice for frame in frames for notice in frame.domain.notices)
        return cls(
            names=samples.names,
            columns=samples.columns,
            frames=tuple(frames),
            frame_starts=np.concatenate([[0], np.cumsum(draws)]),
            model=model,
            partitions=fit.partitions,
            masses=draw_masses(fit.partitions, model, seed),
            report=fit.report,
            leaf_probabilities=fit.leaf_probabilities,
            log_evidence=fit.log_evidence,
            notices=(*samples.notices, *said),
            provenance=provenance,
            log_bayes_factor=fit.log_bayes_factor,
            samples=samples if isinstance(samples, Samples) else None,
            _moments=fit.moments,
        )

    @property
    def domain(self) -> Domain:
        """The map of the columns onto the unit cube, of the first frame."""
        return self.frames[0].domain

    def read_out_of(self, divergence: Divergence) -> str:
        """What to show: "mean", "median" or "plug"; not a mean that does not exist."""
        chosen = default_read_out(self._kind, divergence)
        exists = divergence.mean_exists(self.model.least_pseudo_count)
        return "median" if chosen == "mean" and not exists else chosen

    @property
    def _kind(self) -> str:
        return "paper" if isinstance(self.model, PaperModel) else "ratio"

    def tails(self, level: float, first: int, second: int) -> tuple[float, float]:
        """Probabilities at the ends of an interval for two sets, given by their numbers."""
        return self.model.tails(level, self.model.sizes[first] + self.model.sizes[second])

    # --- how different -------------------------------------------------------------------------

    def draws(
        self,
        divergence: Asked,
        first: str | None = None,
        second: str | None = None,
    ) -> FloatArray:
        """Posterior draws of a divergence.

        Args:
            divergence: "kl", "reverse_kl", "jeffreys", "js", "tv", "hellinger",
                "squared_hellinger", "chi2", "renyi:2", "tsallis:2", "alpha:0.5" (with any order),
                or a convex function φ for ∑ p φ(q/p).
            first: Name of the set that p stands for. Only needed with more than two sets.
            second: Name of the set that q stands for.
        """
        i, j = self._pair(first, second, "draws")
        return self._draws(divergences.parse(divergence, "draws"), i, j)

    def estimate(
        self,
        divergence: Asked,
        first: str | None = None,
        second: str | None = None,
        *,
        read_out: str | None = None,
    ) -> float:
        """One number for a divergence.

        Args:
            divergence: See `draws`.
            first: See `draws`.
            second: See `draws`.
            read_out: "mean", the posterior mean: exact where the engine is and the divergence
                allows it, and then the same for every seed; else in closed form given each drawn
                partition where there is one, averaged over the draws. "median" of the draws.
                "plug", the divergence of the mean masses of each partition, in the median over the
                partitions drawn. None for what has the smallest errors with the ratio model,
                "plug" for orders above 1 and "median" for all else; "mean" with the paper's.
        """
        chosen = divergences.parse(divergence, "estimate")
        read_out = default_read_out(self._kind, chosen) if read_out is None else read_out
        check_choice(read_out, READ_OUTS, parameter="read_out", owner="estimate")
        i, j = self._pair(first, second, "estimate")
        if read_out == "median":
            return float(np.median(self._draws(chosen, i, j)))
        if read_out == "plug":
            return float(np.median(self.plugged(chosen, i, j)))
        if not chosen.mean_exists(self.model.least_pseudo_count):
            raise bad(
                "read_out",
                "estimate",
                "name a number that exists",
                read_out,
                f"{chosen.why_no_mean(self.model.least_pseudo_count)} Use read_out='median'.",
            )
        return self._mean(chosen, i, j)

    def interval(
        self,
        divergence: Asked,
        level: float = 0.9,
        first: str | None = None,
        second: str | None = None,
    ) -> Interval:
        """Credible interval of a divergence, with equal tails.

        With the ratio model the tails are calibrated; see `RatioModel.tails`.
        """
        level = check_level(level, owner="interval")
        i, j = self._pair(first, second, "interval")
        drawn = self._draws(divergences.parse(divergence, "interval"), i, j)
        return _interval(drawn, self.tails(level, i, j))

    def same_probability(self, prior: float = 0.5) -> float:
        """Posterior probability that all sets share one distribution.

        It needs the ratio model, and a frame that does not look at which point is of which set.

        Args:
            prior: The probability of that before seeing the data.
        """
        prior = check_level(prior, parameter="prior", owner="same_probability")
        if isinstance(self.model, PaperModel):
            seen, way_out = Seen("the paper's model"), "It has no place for equality."
            raise bad("model", "same_probability", "be 'ratio'", seen, way_out)
        if self.log_bayes_factor is None:
            rule, seen = "include one that does not look at the sets", Seen(self.frames[0].name)
            raise bad("frames", "same_probability", rule, seen, "Add 'ranks' to the frames.")
        return float(expit(np.log(prior) - np.log1p(-prior) - self.log_bayes_factor))

    def summary(
        self,
        divergence: Asked | Iterable[Asked] = divergences.SUMMARY,
        *,
        level: float = 0.9,
        first: str | None = None,
        second: str | None = None,
    ) -> pd.DataFrame:
        """A table with a row per divergence.

        It has the mean, the median, the credible interval from `low` to `high`, and a note where
        there is one to make.

        Args:
            divergence: One divergence or several; see `draws`.
            level: Probability that an interval is to hold.
            first: See `draws`.
            second: See `draws`.
        """
        import pandas as pd

        level = check_level(level, owner="summary")
        i, j = self._pair(first, second, "summary")
        rows = []
        if isinstance(divergence, str) or not isinstance(divergence, Iterable):
            divergence = [divergence]
        for item in divergence:
            chosen = divergences.parse(item, "summary")
            drawn = self._draws(chosen, i, j)
            exists = chosen.mean_exists(self.model.least_pseudo_count)
            ends = _interval(drawn, self.tails(level, i, j))
            rows.append(
                {
                    "divergence": chosen.name,
                    "mean": self._mean(chosen, i, j) if exists else np.nan,
                    "median": float(np.median(drawn)),
                    "low": ends.low,
                    "high": ends.high,
                    "note": "" if exists else "mean does not exist",
                }
            )
        return pd.DataFrame(rows).set_index("divergence")

    @property
    def leaves(self) -> IntArray:
        """Number of sub-regions of each drawn partition."""
        return self.partitions.leaves

    # --- where ---------------------------------------------------------------------------------

    def regions(
        self, *, level: float = 0.9, first: str | None = None, second: str | None = None
    ) -> pd.DataFrame:
        """The sub-regions of the most probable partition drawn, in the user's units.

        Each row has the region in words (`where`), the points of each set in it, the posterior mean
        of each set's mass, the log ratio of the two densities with its credible interval, the
        probability that the first set is the denser one, and the ends of the region in every
        column. Masses and ratios are averaged over all partitions drawn in the frame that is shown,
        which keeps your columns; where turned frames have nearly all draws, it is looked through
        once more. The rows are in the order of how much they contribute to the total variation
        distance; with a single set, in the order of its mass.
        """
        from cobpm.regions import region_table

        level = check_level(level, owner="regions")
        pair = None if len(self.names) == 1 else self._pair(first, second, "regions")
        return region_table(self, level, pair)

    def log_ratio(
        self,
        points: Any,
        first: str | None = None,
        second: str | None = None,
        *,
        level: float | None = None,
    ) -> FloatArray | Band:
        """Log of the ratio of two densities at some points, averaged over the posterior.

        Points outside the domain get the value of the nearest region inside.

        Args:
            points: As many columns as the samples.
            first: See `draws`.
            second: See `draws`.
            level: Ask for a credible interval at each point.
        """
        i, j = self._pair(first, second, "log_ratio")
        rows = self._points(points, "log_ratio")
        log_masses = np.log(self.masses[:, i]) - np.log(self.masses[:, j])
        return self._at(rows, log_masses, level, "log_ratio")

    def density(
        self, points: Any, which: str | None = None, *, level: float | None = None
    ) -> FloatArray | Band:
        """Density of one set at some points, in the user's units, averaged over the posterior.

        It is 0 outside the domain. At a value with an interval of its own on the unit axis (see
        `domain`), it is a density with respect to counting measure in that column: a probability,
        not a probability per unit.

        Args:
            points: As many columns as the samples.
            which: Name of the set. Only needed with more than one.
            level: Ask for a credible interval at each point.
        """
        if not isinstance(self.model, PaperModel):
            raise bad(
                "model",
                "density",
                "have densities",
                Seen("the ratio model, which knows ratios alone"),
                "Fit model='paper', or ask for log_ratio().",
            )
        k = self._set(which, "which", "density")
        rows = self._points(points, "density")
        volume = np.ldexp(1.0, -self.partitions.depths.astype(int))
        factor = np.exp(self.domain.log_density_factor(rows))
        found = self._at(rows, self.masses[:, k] / volume, level, "density")
        if isinstance(found, Band):
            return Band(found.estimate * factor, found.low * factor, found.high * factor)
        return found * factor

    @property
    def plot(self) -> Plots:
        """Pictures: `plot()` for an overview, `plot.map()`, `plot.columns()` … for one of them."""
        from cobpm.plots import Plots

        return Plots(self)

    # --- elsewhere -----------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the posterior to a file that `cobpm.load` reads.

        The file appears whole or not at all. The exact means of a `summary` of two sets go with it;
        the engine that knows all others does not, and `estimate` averages over the draws for those.
        """
        from cobpm.storage import save

        save(self, path)

    def write_report(self, path: Any, **options: Any) -> None:
        """Write a report to an HTML file; see `cobpm.report.write` for its options."""
        from cobpm.report import write

        write(self, path, **options)

    def to_datatree(self) -> xr.DataTree:
        """The draws as an xarray DataTree in ArviZ's layout, with dimensions chain and draw."""
        from cobpm.storage import to_datatree

        return to_datatree(self)

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process: no recursion and no points, as in `save`."""
        return {**self.__dict__, "_moments": None, "samples": None}

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{name} ({size:,})" for name, size in zip(self.names, self.model.sizes, strict=True)
        )
        about = (
            f"Posterior of {sizes} in {len(self.columns)} column{'s' * (len(self.columns) != 1)}: "
            f"{len(self.partitions):,} draws by engine {self.report.engine!r}, "
            f"{self.leaves.mean():.1f} sub-regions on average"
        )
        warnings = [f"Warning: {sentence}" for sentence in self.report.warnings]
        return "\n".join([about, *warnings, *(f"Notice: {notice}" for notice in self.notices)])

    # --- inside --------------------------------------------------------------------------------

    def _pair(self, first: str | None, second: str | None, owner: str) -> tuple[int, int]:
        if len(self.names) == 1:
            seen = Seen(f"a posterior of the single set '{self.names[0]}'")
            way_out = "Fit both samples together: compare(x, y), or fit([x, y, …])."
            raise bad("first", owner, "name a set to compare with another one", seen, way_out)
        if first is None and second is None and len(self.names) == 2:
            return 0, 1
        i, j = self._set(first, "first", owner), self._set(second, "second", owner)
        if i == j:
            way_out = f"The sets are {self._known_names()}."
            raise bad("second", owner, "name another set than the first", second, way_out)
        return i, j

    def _set(self, name: str | None, parameter: str, owner: str) -> int:
        if name is None and len(self.names) == 1 and parameter == "which":
            return 0
        if name is None or str(name) not in self.names:  # keys such as 2013 became names "2013"
            example = f"{parameter}={self.names[parameter == 'second']!r}"
            way_out = f"The sets are {self._known_names()}: {owner}(…, {example}), say."
            raise bad(parameter, owner, "name one of the sets", name, way_out)
        return self.names.index(str(name))

    def _known_names(self) -> str:
        return ", ".join(map(repr, self.names[:8])) + " …" * (len(self.names) > 8)

    def _draws(self, divergence: Divergence, i: int, j: int) -> FloatArray:
        return divergence.of_masses(self.masses[:, i], self.masses[:, j], self.partitions.starts)

    def counts_of(self, values: FloatArray) -> IntArray:
        """How many of some points, rows of all columns, fall into each leaf of each partition."""
        counts = np.zeros(len(self.partitions.counts), dtype=np.int64)
        for frame, partitions, leaves in self._by_frame():
            codes = frame.codes(values)
            for part in self._chunks(codes.shape[1]):
                located = partitions.locate(np.ascontiguousarray(codes[:, part]))
                counts[leaves] += np.bincount(located.ravel(), minlength=leaves.stop - leaves.start)
        return counts

    def draw_masses(self, counts: IntArray, seed: int) -> FloatArray:
        """Masses of sets with given counts in each leaf, (all leaves, sets)."""
        return draw_masses(replace(self.partitions, counts=counts), self.model, seed)

    def with_set(self, name: str, values: FloatArray, seed: int) -> Posterior:
        """A posterior with one more set, which took no part in the choice of partitions."""
        counts = np.column_stack([self.partitions.counts, self.counts_of(values)])
        partitions = replace(self.partitions, counts=counts)
        model = replace(self.model, sizes=(*self.model.sizes, len(values)))
        return replace(
            self,
            names=(*self.names, name),
            model=model,
            partitions=partitions,
            masses=draw_masses(partitions, model, seed),
            leaf_probabilities=None,
            log_evidence=None,
            log_bayes_factor=None,
            samples=None,
            _moments=None,
            _exact_means={},
        )

    def plugged(self, divergence: Divergence, i: int, j: int) -> FloatArray:
        """The divergence of the mean masses of each partition drawn."""
        p, q = self.mean_masses()[:, [i, j]].T
        return divergence.of_masses(p, q, self.partitions.starts)

    def mean_masses(self, counts: IntArray | None = None) -> FloatArray:
        """Mean mass of each set in each leaf, given the partition, (all leaves, sets)."""
        counts = self.partitions.counts if counts is None else counts
        return self.model.mean_masses(counts, self.partitions.starts)

    def _by_frame(self) -> Iterator[tuple[Frame, Partitions, slice]]:
        """Each frame with the partitions drawn in it, and the rows of their leaves."""
        for frame, first, last in zip(
            self.frames, self.frame_starts[:-1], self.frame_starts[1:], strict=True
        ):
            if first < last:
                starts = self.partitions.leaf_starts
                leaves = slice(int(starts[first]), int(starts[last]))
                yield frame, self.partitions.between(first, last), leaves

    def _mean(self, divergence: Divergence, i: int, j: int) -> float:
        key = f"{divergence.name} {i} {j}"
        if key in self._exact_means:
            return self._exact_means[key]
        if self._moments is not None and self._moments.knows(divergence):
            self._exact_means[key] = self._moments.mean(divergence, i, j)
            return self._exact_means[key]
        if divergence.additive is None or not isinstance(self.model, PaperModel):
            return float(self._draws(divergence, i, j).mean())
        a, b = (self.model.delta + self.partitions.counts[:, k] for k in (i, j))
        return float(divergence.mean_given_partition(a, b, self.partitions.starts).mean())

    def _points(self, points: Any, owner: str) -> FloatArray:
        return as_points(points, self.columns, parameter="points", owner=owner)

    def _at(
        self, rows: FloatArray, leaf_values: FloatArray, level: float | None, owner: str
    ) -> FloatArray | Band:
        """Mean over the draws of what holds in a point's leaf, with quantiles on request."""
        if level is not None:
            level = check_level(level, owner=owner)
        found = np.empty((3, len(rows)))
        views = list(self._by_frame())
        for part in self._chunks(len(rows)):
            values = np.concatenate(
                [
                    leaf_values[leaves][partitions.locate(frame.codes(rows[part]))]
                    for frame, partitions, leaves in views
                ]
            )
            found[0, part] = values.mean(axis=0)
            if level is not None:
                found[1:, part] = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return found[0] if level is None else Band(*found)

    def _chunks(self, points: int) -> Iterator[slice]:
        """Points to look up in all partitions at a time, so that memory stays bounded."""
        step = max(1, 4_000_000 // len(self.partitions))
        return (slice(first, min(points, first + step)) for first in range(0, points, step))


def default_read_out(model: str, divergence: Divergence) -> str:
    """How estimates of a model are read out of its posterior if nobody says."""
    if model == "paper":
        return "mean"
    return "plug" if divergence.steep else "median"


def _interval(draws: FloatArray, tails: tuple[float, float]) -> Interval:
    low, high = np.quantile(draws, tails)
    return Interval(float(low), float(high))


def draw_masses(partitions: Partitions, model: PaperModel | RatioModel, seed: int) -> FloatArray:
    """Masses of every set in every partition, given the partition.

    Blocks of partitions have streams of their own, so that
    threads can share the work and the result does not depend on how many there are.
    """
    # One set after another: how they are read.
    masses = np.empty(partitions.counts.shape, order="F")
    edges = np.unique(np.linspace(0, len(partitions), 65).astype(int))
    streams = np.random.SeedSequence(seed).spawn(64)

    def draw(block: int) -> None:
        first, last = edges[block], edges[block + 1]
        leaves = slice(partitions.leaf_starts[first], partitions.leaf_starts[last])
        starts = partitions.leaf_starts[first:last] - partitions.leaf_starts[first]
        rng = np.random.default_rng(streams[block])
        masses[leaves] = model.draw_masses(partitions.counts[leaves], starts, rng)

    threads = thread_count()
    if threads == 1:
        for block in range(len(edges) - 1):
            draw(block)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(draw, range(len(edges) - 1)))
    return masses


def load(path: Any) -> Posterior:
    """Read a posterior that `Posterior.save` wrote."""
    from cobpm.storage import load

    return load(path)


__all__ = ["Band", "Interval", "Posterior", "default_read_out", "draw_masses", "load"]

"""The scikit-learn face.

`CoBPM` is a classifier of points, whose classes are the sample sets. `SampleSetDivergence` is for
data in which every observation is a sample set: it turns them into a matrix of divergences.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobpm import divergences
from cobpm.api import MAX_REGIONS, fit, pairwise
from cobpm.arrays import FloatArray
from cobpm.mean_density import MeanDensity
from cobpm.model import PaperModel
from cobpm.pair_runs import fingerprint
from cobpm.pairs import DISTANCES, NEIGHBOUR, Pairwise, Question, against
from cobpm.posterior import Posterior
from cobpm.samples import (
    Samples,
    as_points,
    as_samples,
    check_choice,
    check_positive,
    check_priors,
    check_random_state,
    check_sets,
)
from cobpm.threads import thread_count

try:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        TransformerMixin,
    )
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "The estimators of cobpm need scikit-learn 1.6 or later: pip install cobpm[sklearn]"
    ) from error

__all__ = ["CoBPM", "SampleSetDivergence"]


class CoBPM(ClassifierMixin, BaseEstimator):  # the order that scikit-learn asks for
    """Classify points by the densities of the classes, estimated on one partition of the space.

    Each class is a sample set, and all of them are fitted jointly by `cobpm.fit`. The probability
    of a class at a point is proportional to its prior times the posterior mean of its density
    there. The model is the paper's: the ratio model has no densities.

    Args:
        bounds: The range of the columns, as in `cobpm.fit`, like all that follow unless said
            otherwise.
        delta: Pseudo-count of every cell for every class.
        sigma: Price of a cell.
        engine: Way of computing.
        draws: Number of partitions to average over.
        max_regions: Bound on the size of the recursion.
        priors: Probability of each class before its point is seen, in the order of `classes_`. None
            for the shares of the training data.
        random_state: Seed, NumPy generator, or RandomState, from which a seed is then drawn.

    Attributes:
        classes_: The labels, sorted.
        n_features_in_: Number of columns.
        feature_names_in_: Names of the columns, if they came in a data frame.
        posterior_: The `Posterior` of the classes; the name of a set is its label as text.
        priors_: Probability of each class.

    Examples:
        >>> import numpy as np
        >>> from cobpm import CoBPM
        >>> X = np.random.default_rng(0).normal(size=(400, 2))
        >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same sign", "other")
        >>> CoBPM(random_state=0).fit(X, y).predict([[1.0, 1.0], [1.0, -1.0]])
        array(['same sign', 'other'], dtype='<U9')
    """

    def __init__(
        self,
        *,
        bounds: Any = None,
        delta: float | None = None,
        sigma: float | None = None,
        engine: str = "auto",
        draws: int = 3000,
        max_regions: int = MAX_REGIONS,
        priors: Any = None,
        random_state: Any = None,
    ) -> None:
        self.bounds = bounds
        self.delta = delta
        self.sigma = sigma
        self.engine = engine
        self.draws = draws
        self.max_regions = max_regions
        self.priors = priors
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> CoBPM:
        """Fit the classes jointly.

        Args:
            X: A row for each point.
            y: The class of each point.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, which = np.unique(y, return_inverse=True)
        sizes = np.bincount(which)
        if self.priors is None:
            self.priors_ = sizes / len(X)
        else:
            self.priors_ = check_priors(self.priors, len(sizes), owner="CoBPM")
        rng = check_random_state(self.random_state, owner="CoBPM")
        rows = np.split(X[np.argsort(which, kind="stable")], np.cumsum(sizes)[:-1])
        names = map(str, self.classes_)
        self.posterior_ = fit(
            dict(zip(names, map(self._named, rows), strict=True)),
            model="paper",  # the ratio model has no densities
            bounds=self.bounds,
            delta=self.delta,
            sigma=self.sigma,
            engine=self.engine,
            draws=self.draws,
            max_regions=self.max_regions,
            rng=rng,
        )
        assert isinstance(self.posterior_.model, PaperModel)
        self._density = MeanDensity.of(self.posterior_.partitions, self.posterior_.model)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each point."""
        joint, _ = self._joint(X)
        return np.asarray(self.classes_[joint.argmax(axis=1)])

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class at each point, (points, classes).

        Points outside the domain get the value of the nearest region inside.
        """
        joint, _ = self._joint(X)
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log of `predict_proba`; −inf only for classes with the prior 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> FloatArray:
        """With two classes the log odds of the second one, (points,); else `predict_log_proba`."""
        logs = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def score_samples(self, X: Any) -> FloatArray:
        """Log density of all classes together at each point; the lower, the more unusual.

        The density is the sum of the classes' posterior mean densities times their priors, in the
        units of the columns. As in `Posterior.density`, it is 0 outside the domain, hence −inf
        here: such a point is more unusual than any inside, and the model cannot tell by how much.
        `bounds` wider than the data make room for it. At a repeated value with an interval of its
        own the density is a probability in that column.
        """
        joint, X = self._joint(X)
        return np.asarray(np.log(joint.sum(axis=1)) + self.posterior_.domain.log_density_factor(X))

    def _joint(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Prior times density on the unit cube, (points, classes), and the points checked."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.priors_ * self._density.at(self.posterior_.frames[0].codes(X)), X

    def _named(self, rows: FloatArray) -> Any:
        """Rows with the names of their columns, for `bounds` and `posterior_.regions()`."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=names, copy=False)


class SampleSetDivergence(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Divergences of sample sets from those in the training data.

    Each observation is a sample set: an array or a data frame with a row per point, and X is a list
    of them. The training data becomes a square matrix with a zero diagonal, new sets become a
    matrix with a column for each training set, and no entry is negative: what estimators with
    `metric="precomputed"` or, given `affinity`, with `affinity="precomputed"` and
    `kernel="precomputed"` expect. A row depends on no other row of the new sets, and a set of the
    training data is recognised by its values and gets its row of the square matrix.

    Args:
        divergence: See `Posterior.draws`.
        symmetric: Take the mean of both directions. Otherwise divergences go from the set of the
            row to that of the column.
        affinity: None for divergences. Otherwise similarities between 0 and 1, always symmetric,
            with this scale: a number, "median" or "local"; see `Pairwise.affinity`. New sets are
            scaled by the training data.
        partition: "joint" for one posterior over partitions, fitted to the training data; "pair"
            for one of each pair, which takes long. See `cobpm.pairwise`.
        read_out: "mean", "median" or "plug"; see `Posterior.estimate`. None as in `pairwise`.
        model: As in `cobpm.compare`, like the others unless said otherwise.
        bounds: The range of the columns. With partition="joint", points of new sets outside count
            in the nearest cell.
        delta: Pseudo-count of every cell for every set, in the paper's model. None for 0.5.
        sigma: Price of a cell.
        engine: Way of computing.
        draws: Number of posterior draws.
        max_regions: Bound on the size of the recursion.
        random_state: Seed, NumPy generator, or RandomState, from which a seed is then drawn.

    Attributes:
        divergences_: Divergences between the training sets, square.
        posterior_: The `Posterior` of the training sets; None with partition="pair".
        n_features_in_: Number of columns of the sets.
        columns_: Their names.
    """

    def __init__(
        self,
        divergence: str | Callable[[Any], Any] = "renyi:0.5",
        *,
        symmetric: bool = True,
        affinity: float | str | None = None,
        partition: str = "joint",
        read_out: str | None = None,
        model: str = "ratio",
        bounds: Any = None,
        delta: float | None = None,
        sigma: float | None = None,
        engine: str = "auto",
        draws: int = 1000,
        max_regions: int = MAX_REGIONS,
        random_state: Any = None,
    ) -> None:
        self.divergence = divergence
        self.symmetric = symmetric
        self.affinity = affinity
        self.partition = partition
        self.read_out = read_out
        self.model = model
        self.bounds = bounds
        self.delta = delta
        self.sigma = sigma
        self.engine = engine
        self.draws = draws
        self.max_regions = max_regions
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> SampleSetDivergence:
        """Work out the divergences between the training sets.

        Args:
            X: A list of sample sets.
            y: Ignored.
        """
        owner = "SampleSetDivergence"
        sets = check_sets(X, owner=owner)
        samples = as_samples(sets, owner=owner)
        if isinstance(self.affinity, str):
            check_choice(self.affinity, ("median", "local"), parameter="affinity", owner=owner)
        elif self.affinity is not None:
            check_positive(self.affinity, parameter="affinity", owner=owner)
        rng = check_random_state(self.random_state, owner=owner)
        self._seed = int(rng.integers(0, 2**63))
        found = self._pairwise(sets)
        self.columns_, self.n_features_in_ = samples.columns, samples.d
        self.divergences_ = found.matrix
        self._read_out = found.read_out
        self._rows = {fingerprint(values): k for k, values in enumerate(samples.values)}
        self.posterior_ = found.posterior(0, 1) if self.partition == "joint" else None
        self._sets = sets if self.partition == "pair" else []
        self._known = found.matrix if self.affinity is None else found.affinity(self.affinity)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """The square matrix of the training sets."""
        return self.fit(X)._known.copy()

    def transform(self, X: Any) -> FloatArray:
        """A row for each set of X, and a column for each training set."""
        check_is_fitted(self)
        sets = check_sets(X, owner="SampleSetDivergence")
        return np.stack([self._row(one, f"X[{k}]") for k, one in enumerate(sets)])

    def _row(self, one: Any, parameter: str) -> FloatArray:
        values = as_points(one, self.columns_, parameter=parameter, owner="SampleSetDivergence")
        known = self._rows.get(fingerprint(values))
        if known is not None:
            return np.asarray(self._known[known])
        post = self.posterior_
        row = self._against_each(one) if post is None else self._against(post, values)
        return row if self.affinity is None else self._scaled(row)

    def _pairwise(self, sets: list[Any]) -> Pairwise:
        return pairwise(
            sets,
            self.divergence,
            partition=self.partition,
            read_out=self.read_out,
            symmetric=self._both_ways,
            draws=self.draws,
            rng=self._seed,
            model=self.model,
            bounds=self.bounds,
            delta=self.delta,
            sigma=self.sigma,
            engine=self.engine,
            max_regions=self.max_regions,
        )

    def _against(self, post: Posterior, values: FloatArray) -> FloatArray:
        """Divergences of a new set from the training sets, on the partitions of the latter."""
        parsed = divergences.parse(self.divergence, "SampleSetDivergence")
        question = Question(parsed, 0.9, self._read_out, self._both_ways)
        # A seed of its own, so that the row does not depend on the sets that come with it.
        words = np.random.SeedSequence([self._seed, int(fingerprint(values)[:16], 16)])
        seed = int(words.generate_state(1, np.uint64)[0])
        new = Samples(("new",), self.columns_, (values,))
        return np.asarray(against(post, question, new, seed)[0, 0])

    def _against_each(self, one: Any) -> FloatArray:
        """The same with a posterior of its own for each pair."""

        def compared(known: Any) -> float:
            return float(self._pairwise([one, known]).matrix[0, 1])

        with ThreadPoolExecutor(thread_count()) as pool:
            return np.array(list(pool.map(compared, self._sets)))

    def _scaled(self, row: FloatArray) -> FloatArray:
        """Affinities of a new set, as those of the training sets."""
        known = self.divergences_
        if divergences.parse(self.divergence, "SampleSetDivergence").name in DISTANCES:
            known, row = known**2, row**2
        others = ~np.eye(len(known), dtype=bool)
        if self.affinity == "local":
            nearest = np.sort(np.where(others, known, np.inf), axis=1)
            neighbour = min(NEIGHBOUR, len(known) - 1) - 1
            by = np.sqrt(nearest[:, neighbour] * np.sort(row)[neighbour])
        else:
            by = np.median(known[others]) if self.affinity == "median" else self.affinity
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(row == 0.0, 1.0, np.exp(-row / by))

    @property
    def _both_ways(self) -> bool:
        return bool(self.symmetric) or self.affinity is not None

    @property
    def _n_features_out(self) -> int:
        return len(self.divergences_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.no_validation = tags._skip_test = True  # scikit-learn's checks pass a table
        return tags

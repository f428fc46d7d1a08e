"""The scikit-learn face: a classifier whose classes are the sample sets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobpm.api import MAX_REGIONS, fit
from cobpm.arrays import FloatArray
from cobpm.mean_density import MeanDensity
from cobpm.samples import check_priors, check_random_state

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "The estimators of cobpm need scikit-learn 1.6 or later: pip install cobpm[sklearn]"
    ) from error

__all__ = ["CoBPM"]


class CoBPM(ClassifierMixin, BaseEstimator):  # the order that scikit-learn asks for
    """Classify points by the densities of the classes, estimated on one partition of the space.

    Each class is a sample set, and all of them are fitted jointly by `cobpm.fit`. The probability
    of a class at a point is proportional to its prior times the posterior mean of its density
    there.

    Args:
        model: As in `cobpm.fit`, like the others unless said otherwise.
        bounds: The range of the columns.
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
        model: str = "paper",
        bounds: Any = None,
        delta: float | None = None,
        sigma: float | None = None,
        engine: str = "auto",
        draws: int = 3000,
        max_regions: int = MAX_REGIONS,
        priors: Any = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
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
            model=self.model,
            bounds=self.bounds,
            delta=self.delta,
            sigma=self.sigma,
            engine=self.engine,
            draws=self.draws,
            max_regions=self.max_regions,
            rng=rng,
        )
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
        return self.priors_ * self._density.at(self.posterior_._codes(X)), X

    def _named(self, rows: FloatArray) -> Any:
        """Rows with the names of their columns, for `bounds` and `posterior_.regions()`."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=names, copy=False)

"""What people use today to estimate divergences from two samples, behind one interface.

    python -m benchmarks.peers --records peers.jsonl   # half an hour; starts again where it stopped

Each peer takes two sets of points and returns the divergences that it can give, by name. It sees
columns divided by their pooled standard deviation. Equal points, with which nearest neighbours are
not defined, are first moved apart by a millionth of that. No peer gives intervals.

`available()` leaves out, and says so, what is not installed: `pip install cobpm[benchmark]`.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import digamma, expit, xlogy

from benchmarks.errors import markdown, run
from benchmarks.problems import TUNING
from benchmarks.seen_problems import SEEN
from benchmarks.untouched_problems import UNTOUCHED
from cobpm.baselines import knn_divergence, knn_log_ratios

FloatArray = NDArray[np.float64]
Estimates = dict[str, float]
Peer = Callable[[FloatArray, FloatArray], Estimates]

FOLDS = 5


def scaled(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns divided by their pooled standard deviation, equal points moved apart."""
    pooled = np.vstack([x, y])
    pooled = pooled / pooled.std(axis=0)
    if len(np.unique(pooled, axis=0)) < len(pooled):
        pooled = pooled + 1e-6 * np.random.default_rng(0).uniform(-1, 1, pooled.shape)
    return pooled[: len(x)], pooled[len(x) :]


# Nearest neighbours.


def neighbours(x: FloatArray, y: FloatArray, k: int) -> Estimates:
    """From the distances to the k-th neighbour of each point in its own set and in the other.

    KL by Wang, Kulkarni and Verdú (2009); Hellinger and Rényi by the powers of Póczos and Schneider
    (2011), whose correction for the bias exists for k above |α − 1| only. Total variation and
    Jensen–Shannon have none: the ratio is plugged in.
    """
    x, y = scaled(x, y)
    estimates = plug_in(knn_log_ratios(x, y, k), -knn_log_ratios(y, x, k))
    del estimates["renyi:2"]
    for name in ["hellinger"] + ["renyi:2"] * (k > 1):
        estimates[name] = knn_divergence(x, y, name, k)
    return estimates


def adaptive_neighbours(x: FloatArray, y: FloatArray) -> Estimates:
    """KL with a number of neighbours that depends on the place (Wang et al. 2009)."""
    x, y = scaled(x, y)
    return {"kl": adaptive_kl(x, y), "reverse_kl": adaptive_kl(y, x)}


def adaptive_kl(x: FloatArray, y: FloatArray) -> float:
    """Around each x, as many neighbours as the ball has that holds one of either set."""
    (n, d), m = x.shape, len(y)
    trees = cKDTree(x), cKDTree(y)
    nearest = trees[0].query(x, k=[2])[0][:, 0], trees[1].query(x, k=[1])[0][:, 0]
    ball = np.maximum(*nearest) * (1 + 1e-12)  # rounding must not lose the neighbour on its edge
    total = 0.0
    for point, radius in zip(x, ball, strict=True):
        own, other = (tree.data[tree.query_ball_point(point, radius)] for tree in trees)
        own_reach, other_reach = (np.linalg.norm(a - point, axis=1).max() for a in (own, other))
        total += d * np.log(other_reach / own_reach)
        total += digamma(len(own) - 1) - digamma(len(other))  # the point itself is in `own`
    return float(total / n + np.log(m / (n - 1)))


# Estimates of the density ratio, plugged in.


def plug_in(at_x: FloatArray, at_y: FloatArray) -> Estimates:
    """Divergences from the logarithm of p/q at the points of both sets.

    Bounded integrands are averaged over both sets with equal weight, under ½(p + q).
    """

    def average(of: Callable[[FloatArray], FloatArray]) -> float:
        return float(of(expit(at_x)).mean() + of(expit(at_y)).mean()) / 2

    root = average(lambda c: 2 * np.sqrt(c * (1 - c)))
    return {
        "tv": average(lambda c: np.abs(2 * c - 1)),
        "hellinger": float(np.sqrt(max(0.0, 1 - root))),
        "kl": float(at_x.mean()),
        "reverse_kl": float(-at_y.mean()),
        "js": float(np.log(2)) + average(lambda c: xlogy(c, c) + xlogy(1 - c, 1 - c)),
        "renyi:2": float(np.log(np.exp(at_x).mean())),
    }


def held_out(classifier: Callable[[], Any], x: FloatArray, y: FloatArray) -> Estimates:
    """From the log-odds of a classifier, at points that it was not fitted to.

    Total variation is what the classifier gains over guessing: at the null it is not biased.
    """
    from sklearn.model_selection import StratifiedKFold

    x, y = scaled(x, y)
    points, labels = np.vstack([x, y]), np.repeat([1, 0], [len(x), len(y)])
    log_odds = np.empty(len(points))
    for fitted, kept in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(points, labels):
        model = classifier().fit(points[fitted], labels[fitted])
        chance = np.clip(model.predict_proba(points[kept])[:, 1], 1e-9, 1 - 1e-9)
        log_odds[kept] = np.log(chance / (1 - chance))
    log_odds += np.log(len(y) / len(x))
    at_x, at_y = log_odds[: len(x)], log_odds[len(x) :]
    gain = float((at_x > 0).mean() - (at_y > 0).mean())
    return plug_in(at_x, at_y) | {"tv": max(0.0, gain)}


def lightgbm_classifier() -> Any:
    """Gradient-boosted trees, as many and as large as suit some hundred points."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=100,
        learning_rate=0.05,
        num_leaves=8,
        random_state=0,
        n_jobs=1,
        verbose=-1,
    )


def stopped_trees() -> Any:
    """Gradient-boosted trees that stop when a tenth of the points is predicted no better."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        early_stopping=True, n_iter_no_change=10, random_state=0, max_leaf_nodes=8
    )


def quadratic_logistic() -> Any:
    """Logistic regression on the columns, their squares and products; right for normal data."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    return make_pipeline(
        StandardScaler(), PolynomialFeatures(2), StandardScaler(), LogisticRegression(max_iter=1000)
    )


def kernels(method: str, x: FloatArray, y: FloatArray) -> Estimates:
    """A ratio that is a sum of kernels, with the package's own choice of their width."""
    from densratio import densratio

    x, y = scaled(x, y)
    np.random.seed(0)  # noqa: NPY002  (the package draws from NumPy's global generator)
    ratio = densratio(x, y, method=method, verbose=False).compute_density_ratio
    # far from all kernels the ratio is zero, and its logarithm would drown everything else
    return plug_in(*(np.log(np.maximum(np.asarray(ratio(points)), 1e-6)) for points in (x, y)))


# Packages that estimate divergences themselves.


def divergence_package(x: FloatArray, y: FloatArray) -> Estimates:
    """KL from five neighbours; for other divergences the package takes one column only."""
    from divergence import knn_kl_divergence

    x, y = scaled(x, y)
    return {"kl": float(knn_kl_divergence(x, y)), "reverse_kl": float(knn_kl_divergence(y, x))}


def infomeasure_package(x: FloatArray, y: FloatArray) -> Estimates:
    """KL as cross-entropy less entropy, both from four neighbours in the maximum norm."""
    import infomeasure

    x, y = scaled(x, y)
    kl = partial(infomeasure.kld, approach="metric", noise_level=0, base="e")
    return {"kl": float(kl(x, y)), "reverse_kl": float(kl(y, x))}


# Name, the modules that it needs, and how it is called.
PEERS: tuple[tuple[str, tuple[str, ...], Peer], ...] = (
    ("k-NN, k=1", ("scipy",), partial(neighbours, k=1)),
    ("k-NN, k=5", ("scipy",), partial(neighbours, k=5)),
    ("k-NN, k=10", ("scipy",), partial(neighbours, k=10)),
    ("k-NN, adaptive", ("scipy",), adaptive_neighbours),
    ("divergence", ("divergence",), divergence_package),
    ("infomeasure", ("infomeasure",), infomeasure_package),
    ("LightGBM", ("lightgbm", "sklearn"), partial(held_out, lightgbm_classifier)),
    ("stopped trees", ("sklearn",), partial(held_out, stopped_trees)),
    ("quadratic logistic", ("sklearn",), partial(held_out, quadratic_logistic)),
    ("uLSIF", ("densratio",), partial(kernels, "uLSIF")),
    ("KLIEP", ("densratio",), partial(kernels, "KLIEP")),
)


def available() -> dict[str, Peer]:
    """The peers whose packages are installed, by name. The others are named on standard error."""
    return dict(_available())


def _available() -> Iterator[tuple[str, Peer]]:
    for name, modules, peer in PEERS:
        if missing := [module for module in modules if find_spec(module) is None]:
            print(f"without {name}: {', '.join(missing)} is not installed", file=sys.stderr)
        else:
            yield name, peer


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the peers on all problems and print their errors."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--records", type=Path, help="keep answers here and start again from them")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 500, 2000])
    parser.add_argument("--replicates", type=int, default=10)
    options = parser.parse_args(arguments)
    peers = available()
    for title, problems in (("TUNING", TUNING), ("SEEN", SEEN), ("UNTOUCHED", UNTOUCHED)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the peers' own
            records = run(problems, peers, options.sizes, options.replicates, options.records)
        print(f"\n## {title}\n\n{markdown(records)}")


if __name__ == "__main__":
    main()

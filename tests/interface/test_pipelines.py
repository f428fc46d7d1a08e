"""Both estimators among scikit-learn's own."""

import numpy as np
import pytest
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cobpm import CoBPM, SampleSetDivergence

RNG = np.random.default_rng(4)
# Three kinds of sets of the same mean: round, and stretched along either diagonal.
SHAPES = [np.eye(2), np.array([[1.0, 0.7], [0.7, 1.0]]), np.array([[1.0, -0.7], [-0.7, 1.0]])]
KINDS = np.tile([0, 1, 2], 10)
SETS = [RNG.multivariate_normal([0, 0], SHAPES[k], RNG.integers(150, 300)) for k in KINDS]
QUICK = {"draws": 100, "random_state": 0}


def test_classifier_in_a_pipeline():
    x, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), CoBPM(**QUICK))
    assert cross_val_score(model, x, y, cv=5).mean() > 0.85
    assert cross_val_predict(model, x, y, cv=3, method="predict_proba").shape == (150, 3)
    losses = cross_val_score(model, x, y, cv=5, scoring="neg_log_loss")
    assert losses.mean() > -0.5  # by chance −1.1


def test_search_for_settings():
    x, y = load_iris(return_X_y=True, as_frame=True)
    search = GridSearchCV(CoBPM(**QUICK), {"bounds": [None, "ranks"], "delta": [0.5, 1.0]}, cv=3)
    search.fit(x, y)
    assert search.best_score_ > 0.85
    assert search.best_estimator_.posterior_.columns == tuple(x.columns)


def test_nearest_neighbours():
    model = make_pipeline(
        SampleSetDivergence(**QUICK), KNeighborsClassifier(3, metric="precomputed")
    )
    assert cross_val_score(model, SETS, KINDS, cv=3).mean() > 0.8  # by chance 1/3
    model.fit(SETS, KINDS)
    distance, neighbour = model[-1].kneighbors(model[:-1].transform(SETS), 1)
    np.testing.assert_array_equal(distance, 0)
    np.testing.assert_array_equal(neighbour[:, 0], np.arange(30))


def test_search_over_sets():
    model = make_pipeline(
        SampleSetDivergence(**QUICK), KNeighborsClassifier(3, metric="precomputed")
    )
    settings = {
        "samplesetdivergence__divergence": ["renyi:0.5", "tv"],
        "kneighborsclassifier__n_neighbors": [1, 3],
    }
    search = GridSearchCV(model, settings, cv=3).fit(SETS, KINDS)
    assert search.best_score_ > 0.8
    assert search.predict(SETS[:3]).tolist() == [0, 1, 2]


@pytest.mark.parametrize("scale", ["median", "local"])
def test_spectral_clustering(scale):
    clusters = SpectralClustering(3, affinity="precomputed", random_state=0)
    model = make_pipeline(SampleSetDivergence(affinity=scale, **QUICK), clusters)
    assert adjusted_rand_score(KINDS, model.fit_predict(SETS)) > 0.8  # by chance 0


def test_support_vectors():
    model = make_pipeline(
        SampleSetDivergence(affinity="median", **QUICK), SVC(kernel="precomputed")
    )
    assert cross_val_score(model, SETS, KINDS, cv=3).mean() > 0.8

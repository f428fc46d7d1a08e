import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import digamma, gamma

from cobpm import InputError
from cobpm.baselines import (
    histogram_divergence,
    knn_divergence,
    knn_log_ratios,
    partition_divergence,
)


def distances(at, points):
    return [sorted(float(np.linalg.norm(p - q)) for q in points) for p in at]


def slow_log_ratios(x, y, k):
    """The ratio of the densities of balls at each x, by loops; ties as the module describes."""
    d, ratios = x.shape[1], []
    own, other = (distances(x, points) for points in (x, y))
    tied = any(row[k] == 0 for row in own) or any(row[k - 1] == 0 for row in other)
    for mine, theirs in zip(own, other, strict=True):
        rho, nu, a, b = mine[k], theirs[k - 1], k, k
        if tied:
            rho = rho or min(r for r in mine if r > 0)
            nu = nu or min(r for r in theirs if r > 0)
            a = sum(r <= rho * (1 + 1e-9) for r in mine) - 1
            b = sum(r <= nu * (1 + 1e-9) for r in theirs)
        p, q = np.exp(digamma(a)) / (len(x) - 1) / rho**d, np.exp(digamma(b)) / len(y) / nu**d
        ratios.append(np.log(p / q))
    return ratios


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("d", [1, 4])
def test_neighbours_agree_with_loops(k, d):
    rng = np.random.default_rng([1, k, d])
    x, y = rng.normal(size=(30, d)), rng.normal(0.3, 1, size=(45, d))
    ratios = slow_log_ratios(x, y, k)
    assert knn_log_ratios(x, y, k) == pytest.approx(ratios)
    assert knn_divergence(x, y, "kl", k) == pytest.approx(np.mean(ratios))
    reverse = np.mean(slow_log_ratios(y, x, k))
    assert knn_divergence(x, y, "reverse KL", k) == pytest.approx(reverse)
    assert knn_divergence(x, y, "jeffreys", k) == pytest.approx(np.mean(ratios) + reverse)


def test_powers_agree_with_the_published_formula():
    rng = np.random.default_rng(2)
    x, y, k, order = rng.normal(size=(40, 2)), rng.normal(size=(60, 2)), 3, 0.8
    powers = np.exp((order - 1) * np.array(slow_log_ratios(x, y, k))).mean()
    factor = gamma(k) ** 2 / (gamma(k - order + 1) * gamma(k + order - 1))
    integral = factor * powers
    assert knn_divergence(x, y, "renyi:0.8", k) == pytest.approx(np.log(integral) / -0.2)
    assert knn_divergence(x, y, "tsallis:0.8", k) == pytest.approx((integral - 1) / -0.2)
    assert knn_divergence(x, y, "alpha:0.8", k) == pytest.approx((integral - 1) / (0.8 * -0.2))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_ties_are_counted(k):
    rng = np.random.default_rng(3)
    x, y = rng.poisson(2, (40, 2)), rng.poisson(3, (50, 2))
    assert knn_log_ratios(x, y, k) == pytest.approx(slow_log_ratios(1.0 * x, 1.0 * y, k))


@pytest.mark.parametrize("divergence", ["kl", "hellinger", "renyi:0.5", "renyi:1.5", "alpha:-0.5"])
def test_copies_of_points_leave_a_number(divergence):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 50, 3))
    y[:20] = x[:20]  # at distance zero in the other sample
    x[30:] = x[30]  # and a heavy atom
    assert np.isfinite(knn_divergence(x, y, divergence, k=3))


def test_neighbours_of_counts_come_near_the_truth():
    rng = np.random.default_rng(5)
    x, y = rng.poisson(10, 4000), rng.poisson(13, 4000)
    truth = 10 * np.log(10 / 13) + 3
    # balls of three values smooth both laws a little
    assert knn_divergence(x, y) == pytest.approx(truth, abs=0.05)


@pytest.mark.parametrize(
    ("divergence", "truth"),
    [  # standard normals, the second shifted by one in each of two columns
        ("kl", 1),
        ("reverse_kl", 1),
        ("jeffreys", 2),
        ("renyi:0.5", 0.5),
        ("renyi:1.3", 1.3),
        ("squared_hellinger", 1 - np.exp(-0.25)),
        ("hellinger", np.sqrt(1 - np.exp(-0.25))),
        ("tsallis:0.7", (np.exp(-0.21) - 1) / -0.3),
        ("alpha:0.7", (np.exp(-0.21) - 1) / -0.21),
    ],
)
def test_neighbours_come_near_the_truth(divergence, truth):
    estimates = []
    for seed in range(4):
        rng = np.random.default_rng([6, seed])
        x, y = rng.normal(size=(4000, 2)), rng.normal(1, 1, size=(5000, 2))
        estimates.append(knn_divergence(x, y, divergence, k=5))
    spread = np.std(estimates, ddof=1) / 2
    assert np.mean(estimates) == pytest.approx(truth, abs=4 * spread + 0.05 * truth)


def test_neighbours_follow_units_and_data_frames():
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    named = pd.DataFrame(x, columns=["a", "b"]), pd.DataFrame(y[:, ::-1], columns=["b", "a"])
    assert knn_divergence(*named) == knn_divergence(x, y)
    assert knn_divergence(7 * x, 7 * y) == pytest.approx(knn_divergence(x, y))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1, np.nan]), "'y' parameter of knn_divergence.* finite"),
        (([1, 2], [1, 2, 3], "kl", 2), "'x' .* more than k=2 points. Got 2 points"),
        (([1, 2], [1, 2, 3], "kl", 0), "'k' .* whole number of at least 1"),
        (([1, 2], [1, 2, 3], "tv"), "'divergence' .* made of"),
        (([1, 2], [1, 2, 3], "renyi:inf"), "'divergence' .* made of"),
        (([1, 2], [1, 2, 3], lambda t: -np.log(t)), "'divergence' .* made of"),
        (([1, 2, 3], [1, 2, 3], "renyi:3", 2), "'k' .* above 2 for 'renyi:3'"),
        (([1, 2, 3], [1, 2, 3], "chi2"), "'k' .* above 1"),
        (([1, 1, 1], [1, 2, 3]), "'x' .* more than one place"),
        (([1, 2, 3], [1, 1, 1]), "'x' .* more than one place"),
        (([[1, 2]] * 3, [1, 2, 3]), "'y' .* as many columns"),
    ],
)
def test_neighbours_refuse_what_they_cannot_use(arguments, message):
    with pytest.raises(InputError, match=message):
        knn_divergence(*arguments)


# Cells with equally many points.


def slow_partition(x, y, per_cell):
    """Cell after cell, without ties."""
    x, y = sorted(x), sorted(y)
    cells, total = len(y) // per_cell, 0.0
    low = -np.inf
    for cell in range(cells):
        last = cell == cells - 1
        high = np.inf if last else y[(cell + 1) * per_cell - 1]
        p, q = (sum(low < v <= high for v in points) / len(points) for points in (x, y))
        total += p * np.log(p / q) if p else 0.0
        low = high
    return total


@pytest.mark.parametrize("per_cell", [1, 7, 10, 60, 100])
def test_cells_agree_with_loops(per_cell):
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=50), rng.normal(0.5, 1, size=65)
    found = partition_divergence(x, y, per_cell, correct_bias=False)
    expected = 0.0 if per_cell == 100 else slow_partition(x, y, per_cell)
    assert found == pytest.approx(expected)


def test_cells_come_near_the_truth_and_the_correction_removes_bias():
    errors = []
    for seed in range(40):
        rng = np.random.default_rng([9, seed])
        x, y = rng.normal(size=400), rng.normal(size=600)  # one law: all there is, is bias
        errors.append([partition_divergence(x, y, correct_bias=c) for c in (False, True)])
    plain, corrected = np.mean(errors, axis=0)
    allowed = 4 * np.std(errors, axis=0)[1] / np.sqrt(40)
    assert abs(corrected) < allowed
    assert plain > 2 * allowed

    rng = np.random.default_rng(10)
    x, y = rng.beta(6, 5, 20_000), rng.beta(5, 6, 20_000)
    assert partition_divergence(x, y) == pytest.approx(0.2, abs=0.02)


def test_cells_stand_ties_and_small_samples():
    rng = np.random.default_rng(11)
    x, y = rng.poisson(3, 20_000), rng.poisson(4, 20_000)
    truth = 3 * np.log(3 / 4) + 1
    assert partition_divergence(x, y, 1) == pytest.approx(truth, abs=0.02)
    assert partition_divergence([1], [2]) == pytest.approx(0)
    assert partition_divergence([1, 1, 2], [1, 1, 1, 1]) == pytest.approx(0)


def test_cells_refuse_more_columns():
    with pytest.raises(InputError, match=r"'x' parameter of partition_divergence.* one column"):
        partition_divergence(np.eye(3), np.eye(3))
    with pytest.raises(InputError, match=r"'per_cell' .* whole number"):
        partition_divergence([1.0, 2.0], [1.0, 2.0], per_cell=0)


# Histograms.


def test_histograms_agree_with_numpy():
    rng = np.random.default_rng(12)
    x, y = rng.beta(3, 5, (300, 2)), rng.random((400, 2))
    p, q = (np.histogramdd(points, 8, [(0, 1)] * 2)[0].ravel() + 0.5 for points in (x, y))
    p, q = p / p.sum(), q / q.sum()
    expected = {
        "kl": stats.entropy(p, q),
        "tv": np.abs(p - q).sum() / 2,
        "hellinger": np.sqrt(1 - np.sqrt(p * q).sum()),
        "renyi:2": np.log((p**2 / q).sum()),
    }
    for name, value in expected.items():
        assert histogram_divergence(x, y, name, bounds=(0, 1)) == pytest.approx(value)
    of_function = histogram_divergence(x, y, lambda t: -np.log(t), bounds=(0, 1))
    assert of_function == pytest.approx(expected["kl"])


def test_a_fine_pseudo_count_gives_the_plain_histogram():
    x, y = [0.1, 0.2, 0.9], [0.1, 0.6, 0.9, 0.9]
    found = histogram_divergence(x, y, "tv", bins=2, pseudo_count=1e-12)
    assert found == pytest.approx(2 / 3 - 1 / 4)  # the ends are 0.1 and 0.9


def test_histograms_of_the_paper_come_near_its_table():
    rng = np.random.default_rng(13)
    x, y = rng.beta(3, 5, (400_000, 2)), rng.random((400_000, 2))
    for name, value in {"tv": 0.5269, "hellinger": 0.4935, "kl": 0.7964, "renyi:2": 1.0291}.items():
        assert histogram_divergence(x, y, name, 8, (0, 1)) == pytest.approx(value, abs=0.01)


def test_histograms_take_constant_columns_and_limits_by_name():
    x = pd.DataFrame({"a": [1.0, 2.0, 2.0], "b": 5.0})
    y = pd.DataFrame({"a": [1.0, 1.0, 2.0], "b": 5.0})
    one = histogram_divergence(x[["a"]], y[["a"]], "tv", 2, pseudo_count=1e-12)
    assert histogram_divergence(x, y, "tv", 2, pseudo_count=1e-12) == pytest.approx(one)
    wide = histogram_divergence(x, y, "tv", 2, {"a": (-10, 10)}, pseudo_count=1e-12)
    assert wide == pytest.approx(0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bins": 0}, "'bins' .* at least 1"),
        ({"bins": 4000}, "'bins' .* at most 10,000,000 cells"),
        ({"bounds": "ranks"}, "'bounds' .* limits of the columns"),
        ({"bounds": (0, 0.5)}, "'bounds' .* contain every point"),
        ({"pseudo_count": 0}, "'pseudo_count' .* positive number. .*1e-9"),
        ({"divergence": "nonsense"}, "'divergence' .* known name"),
    ],
)
def test_histograms_refuse_what_they_cannot_use(settings, message):
    points = np.random.default_rng(14).random((20, 2))
    with pytest.raises(InputError, match=message):
        histogram_divergence(points, points, **settings)

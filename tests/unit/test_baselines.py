from time import process_time

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


def split(row, radius):
    """How many distances are below the radius, and how many equal it."""
    on = sum(abs(r - radius) <= 1e-9 * radius for r in row)
    return sum(r <= radius * (1 + 1e-9) for r in row) - on, on


def slow_log_ratios(x, y, k):
    """The log ratio of the densities of balls at each x, by loops; ties as the module describes."""
    n, m, d, ratios = len(x), len(y), x.shape[1], []
    own = [row[1:] for row in distances(x, x)]  # without the point itself
    other = distances(x, y)
    repeated = any(row[k - 1] == 0 for row in (*own, *other))
    for mine, theirs in zip(own, other, strict=True):
        rho, nu = mine[k - 1], theirs[k - 1]
        alone = min(rho, nu) > 0 and sum(split(mine, rho)) == sum(split(theirs, nu)) == k
        if alone or not repeated:
            ratios.append(np.log(m / (n - 1)) + d * np.log(nu / rho))
            continue
        (a, on_a), (b, on_b) = (split(row, max(rho, nu)) for row in (mine, theirs))
        if nu > rho * (1 + 1e-9):  # y ends the ball, somewhere among its points at this distance
            a, b = a + on_a * (k - b) / (on_b + 1), k
        elif rho > nu * (1 + 1e-9):
            a, b = k, b + on_b * (k - a) / (on_a + 1)
        else:
            a, b = a + on_a, b + on_b
        ratios.append(np.log(m / (n - 1)) + digamma(a) - digamma(b))
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


def mixture(rng, n, shares, d):
    """Atoms at 0 and ½, and uniform points in between."""
    kind = rng.choice(3, n, p=shares)
    return np.where(kind[:, None] == 2, rng.random((n, d)), 0.5 * kind[:, None])


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("k", [1, 4])
def test_atoms_of_both_samples_among_other_points(d, k):
    """With atoms and densities the divergence is that of the shares, if the uniform parts agree."""
    p, q, found = np.array([0.5, 0.1, 0.4]), np.array([0.2, 0.3, 0.5]), []
    for seed in range(8):
        rng = np.random.default_rng([20, seed, d])
        x, y = mixture(rng, 2000, p, d), mixture(rng, 3000, q, d)
        found.append([knn_divergence(x, y, name, k) for name in ("kl", "reverse_kl", "renyi:0.5")])
    truth = np.array([p @ np.log(p / q), q @ np.log(q / p), -2 * np.log(np.sqrt(p * q).sum())])
    error = np.std(found, axis=0, ddof=1) / np.sqrt(8)
    assert (error < 0.025).all()
    assert np.mean(found, axis=0) == pytest.approx(truth, abs=0.08)
    assert (abs(np.mean(found, axis=0) - truth) < 4 * error + 0.01).all()


@pytest.mark.parametrize("k", [1, 5])
def test_neighbours_of_counts_come_near_the_truth(k):
    found = []
    for seed in range(8):
        rng = np.random.default_rng([5, seed])
        x, y, alike = rng.poisson(10, 4000), rng.poisson(13, 4000), rng.poisson(10, 4000)
        of_two = [knn_divergence(x, y, name, k) for name in ("kl", "renyi:0.5")]
        found.append([*of_two, knn_divergence(x, alike, "kl", k)])
    truth = [10 * np.log(10 / 13) + 3, (np.sqrt(13) - np.sqrt(10)) ** 2, 0]
    error = np.std(found, axis=0, ddof=1) / np.sqrt(8)
    assert (abs(np.mean(found, axis=0) - truth) < 4 * error + 0.005).all()
    assert (error < 0.01).all()


def test_frequencies_of_two_values():
    x, y = np.repeat([0.0, 1.0], [30, 70]), np.repeat([0.0, 1.0], [50, 50])
    # the point itself is no neighbour of its own
    expected = 0.3 * (digamma(29) - digamma(50)) + 0.7 * (digamma(69) - digamma(50))
    assert knn_divergence(x, y) == pytest.approx(expected + np.log(100 / 99))
    assert knn_divergence(x, y) == pytest.approx(0.3 * np.log(0.6) + 0.7 * np.log(1.4), abs=0.02)


def test_values_that_the_other_sample_lacks_make_it_grow():
    found = [knn_divergence([0.0] * n, [1.0] * n) for n in (10, 100, 1000)]
    assert np.diff(found) == pytest.approx(np.log(10), abs=0.1)
    assert knn_divergence([3.0] * 100, [3.0] * 80) == pytest.approx(0, abs=0.01)


def test_one_repeated_point_changes_little():
    rng = np.random.default_rng(21)
    x, y = rng.normal(size=(1000, 2)), rng.normal(1, 1, (1000, 2))
    before, x[1] = knn_divergence(x, y), x[0]
    assert knn_divergence(x, y) == pytest.approx(before, abs=0.01)


def test_ties_are_found_in_spite_of_rounding():
    rng = np.random.default_rng(22)
    x, y = rng.integers(0, 9, (60, 2)), rng.integers(0, 9, (50, 2))
    for offset, step in ((0, 1), (1000, 0.1), (-7, 1 / 3)):
        moved = knn_log_ratios(offset + step * x, offset + step * y, 2)
        assert moved == pytest.approx(knn_log_ratios(x, y, 2))


def test_many_copies_of_one_point_take_no_time():
    rng = np.random.default_rng(23)
    x, y = np.where(rng.random((2, 60_000)) < 0.5, 0, rng.random((2, 60_000)))
    began = process_time()
    assert knn_divergence(x, y) == pytest.approx(0, abs=0.05)
    assert process_time() - began < 5  # a search from every copy takes most of a minute


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

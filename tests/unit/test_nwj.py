import numpy as np
import pytest

from cobpm import InputError
from cobpm.baselines import knn_divergence, nwj_divergence, nwj_fit
from cobpm.diagnostics import ConvergenceWarning


def pair(n, d, seed):
    rng = np.random.default_rng([seed, n, d])
    return rng.random((n, d)), rng.normal(0.6, 0.4, (n, d))


def solved_elsewhere(x, y, method, h, penalty):
    """The program in the values of f at all points, by a general solver: value and divergence."""
    cp = pytest.importorskip("cvxpy")
    n, points = len(x), np.vstack([x, y])
    squares = ((points[:, None] - points) ** 2).sum(axis=-1)
    values, vectors = np.linalg.eigh(np.exp(-squares / (2 * h * h)))
    features = vectors[:, values > 1e-12] * np.sqrt(values[values > 1e-12])
    w = cp.Variable(features.shape[1])
    at_x, at_y = features[:n] @ w, features[n:] @ w
    if method == "M1":
        loss = cp.sum(at_y) / n - cp.sum(cp.log(at_x)) / n
    else:
        loss = cp.sum(cp.exp(at_y)) / n - cp.sum(at_x) / n
    problem = cp.Problem(cp.Minimize(loss + penalty / 2 * cp.sum_squares(w)))
    problem.solve(cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    f = features @ w.value
    ratios = f[:n] if method == "M1" else np.exp(f[n:])
    return problem.value, np.mean(np.log(f[:n]) if method == "M1" else f[:n]), ratios


@pytest.mark.filterwarnings("default:.*inaccurate")  # at this precision the solver says so
@pytest.mark.parametrize("method", ["M1", "M2"])
@pytest.mark.parametrize(
    ("n", "d", "h", "penalty"), [(20, 1, 0.1, 0.05), (30, 3, 0.7, 1 / 30), (40, 2, 0.3, 0.1 / 40)]
)
def test_a_general_solver_finds_the_same(method, n, d, h, penalty):
    x, y = pair(n, d, 1)
    fit = nwj_fit(x, y, method, bandwidth=h, penalty=penalty)
    value, divergence, ratios = solved_elsewhere(x, y, method, h, penalty)
    assert fit.value == pytest.approx(value, abs=1e-9)
    assert fit.divergence == pytest.approx(divergence, abs=1e-6)
    assert fit.ratios == pytest.approx(ratios, rel=1e-4)


@pytest.mark.parametrize("method", ["M1", "M2"])
@pytest.mark.parametrize("strength", [10, 1, 0.1, 0.001])
@pytest.mark.parametrize("h", [0.05, 0.3, 1, 5])
def test_the_duality_gap_closes(method, strength, h):
    x, y = pair(120, 2, 2)
    fit = nwj_fit(x, y, method, bandwidth=h, penalty=strength / 120)
    assert abs(fit.gap) < 1e-9 * max(1, abs(fit.value))
    assert fit.divergence == nwj_divergence(x, y, method, h, strength / 120)


@pytest.mark.parametrize("method", ["M1", "M2"])
def test_a_thousand_points_are_no_trouble(method):
    x, y = pair(1000, 3, 3)
    fit = nwj_fit(x, y, method)
    assert abs(fit.gap) < 1e-9
    assert fit.rank < 600
    assert fit.penalty == 1 / 1000
    pooled = np.vstack([x, y])
    apart = ((pooled[:, None, :] - pooled) ** 2).sum(axis=-1)
    assert fit.bandwidth == pytest.approx(np.sqrt(apart.mean()))


@pytest.mark.parametrize("method", ["M1", "M2"])
def test_it_comes_near_the_truth_with_many_points(method):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 2000, 1))
    found = nwj_divergence(x, y + 1, method, penalty=0.1 / 2000)
    assert found == pytest.approx(0.5, abs=0.1)
    assert abs(nwj_divergence(x, y, method)) < 0.05


def test_the_directions_differ_and_units_do_not_matter():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(300, 1)), 3 * rng.normal(size=(300, 1))
    forth, back = nwj_divergence(x, y, "M2"), nwj_divergence(y, x, "M2")
    assert forth == pytest.approx(np.log(3) + 1 / 18 - 1 / 2, abs=0.2)
    assert back > 1
    assert nwj_divergence(1000 * x, 1000 * y, "M2") == pytest.approx(forth, rel=1e-6)


def test_copies_of_points_do_no_harm():
    x, y = pair(40, 2, 6)
    x[20:] = x[:20]
    y[:5] = x[:5]
    for method in ("M1", "M2"):
        assert abs(nwj_fit(x, y, method).gap) < 1e-9
    assert knn_divergence(x, y) != 0


def test_a_gap_that_stays_open_is_told(monkeypatch):
    monkeypatch.setattr("cobpm.baselines.nwj.MOST_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match="nwj_divergence: the duality gap is .* 2 steps"):
        nwj_divergence(*pair(50, 2, 7))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1, 2, 3]), "'y' .* as many points as 'x': 2. Got 3 points"),
        (([1, 2], [1, 3], "M3"), "'method' .* one of 'M1', 'M2'"),
        (([1, 2], [1, 3], "M1", 0), "'bandwidth' .* positive"),
        (([1, 2], [1, 3], "M1", None, -1), "'penalty' .* positive"),
        (([2, 2], [2, 2]), "'x' .* two different points"),
        (([2, np.inf], [2, 2]), "'x' .* finite"),
    ],
)
def test_it_refuses_what_it_cannot_use(arguments, message):
    with pytest.raises(InputError, match=message):
        nwj_divergence(*arguments)


@pytest.mark.parametrize("method", ["M1", "M2"])
def test_extreme_kernels_and_single_points(method):
    x, y = pair(30, 2, 8)
    apart = nwj_fit(x, y, method, bandwidth=1e-9)  # all points far from each other
    assert apart.steps < 20
    # each f is a number of its own: f(x) = 1/(n α), and α = λ f for M1; f(x) = 1/(n λ) for M2
    assert apart.divergence == pytest.approx(0 if method == "M1" else 1, abs=1e-9)
    alike = nwj_fit(x, y, method, bandwidth=1e9)  # only constants are left
    assert alike.rank == 1
    assert abs(alike.gap) < 1e-12
    single = nwj_fit([1.0], [2.0], method)
    assert abs(single.gap) < 1e-12

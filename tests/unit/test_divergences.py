"""The divergence family: known values, identities, closed-form means, names and errors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, special

from cobpm.divergences import NAMES, SUMMARY, Additive, Divergence, Term, parse
from cobpm.samples import InputError

FloatArray = NDArray[np.float64]
TINY = 2.3e-308  # the smallest mass there is

MORE = ("renyi:0.5", "renyi:3", "renyi:inf", "tsallis:0.5", "alpha:-1", "alpha:2", "alpha:-0.3")
ALL = (*NAMES, *MORE)
CLOSED_FORM = ("kl", "reverse_kl", "jeffreys", "squared_hellinger", "chi2", "tsallis:0.3",
               "tsallis:1.4", "tsallis:2", "alpha:0.5", "alpha:-0.4", "alpha:1.3")  # fmt: skip


def named(name: str) -> Divergence:
    return parse(name, "draws")


def one(name: str, p: Any, q: Any) -> float:
    """The divergence of a single draw."""
    return float(
        named(name).of_masses(np.asarray(p, float), np.asarray(q, float), np.array([0]))[0]
    )


def some_draws(seed: int, draws: int = 40, most: int = 30) -> tuple[FloatArray, FloatArray, Any]:
    rng = np.random.default_rng(seed)
    leaves = rng.integers(1, most, draws)
    starts = np.cumsum(leaves) - leaves
    p = np.concatenate([rng.dirichlet(np.full(size, 0.7)) for size in leaves])
    q = np.concatenate([rng.dirichlet(np.full(size, 0.7)) for size in leaves])
    return np.maximum(p, TINY), np.maximum(q, TINY), starts


def naive(name: str, p: list[float], q: list[float]) -> float:
    """The definitions word for word, with Python numbers."""
    cells = list(zip(p, q, strict=True))
    family, _, order_text = name.partition(":")
    if order_text == "inf":
        return math.log(max(x / y for x, y in cells))
    if order_text:
        order = float(order_text)
        integral = math.fsum(x**order * y ** (1 - order) for x, y in cells)
        if family == "renyi":
            return math.log(integral) / (order - 1)
        return (integral - 1) / (order - 1) / (order if family == "alpha" else 1)
    kl = sum(x * math.log(x / y) for x, y in cells)
    reverse = sum(y * math.log(y / x) for x, y in cells)
    squared_hellinger = max(1 - sum(math.sqrt(x * y) for x, y in cells), 0)
    from_middle = [(x, y, (x + y) / 2) for x, y in cells]
    return {
        "kl": kl,
        "reverse_kl": reverse,
        "jeffreys": kl + reverse,
        "js": sum(x * math.log(x / m) + y * math.log(y / m) for x, y, m in from_middle) / 2,
        "tv": sum(abs(x - y) for x, y in cells) / 2,
        "hellinger": math.sqrt(squared_hellinger),
        "squared_hellinger": squared_hellinger,
        "chi2": sum((x - y) ** 2 / y for x, y in cells),
    }[family]


# --- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"), [("tv", 0.24609), ("hellinger", 0.22066), ("kl", 0.2), ("renyi:2", 0.40547)]
)
def test_beta_densities_give_the_values_of_the_paper(name: str, value: float) -> None:
    x = (np.arange(2**14) + 0.5) / 2**14
    p = x**5 * (1 - x) ** 4  # Beta(6, 5); Beta(5, 6) is its mirror image
    p /= p.sum()
    assert one(name, p, p[::-1]) == pytest.approx(value, abs=5e-6)


@pytest.mark.parametrize("name", ALL)
def test_equals_the_definition_on_ragged_draws(name: str) -> None:
    p, q, starts = some_draws(1)
    found = named(name).of_masses(p, q, starts)
    ends = [*starts[1:], p.size]
    expected = [
        naive(name, p[begin:end].tolist(), q[begin:end].tolist())
        for begin, end in zip(starts, ends, strict=True)
    ]
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-7)


def test_blocks_do_not_change_the_answer() -> None:
    """Draws of one leaf, a draw far larger than a block, and draws across block edges."""
    rng = np.random.default_rng(2)
    leaves = np.concatenate([[1, 100_000, 1, 32_768, 32_767, 2], rng.integers(1, 3000, 60)])
    starts = np.cumsum(leaves) - leaves
    g, h = rng.gamma(2.0, size=(2, leaves.sum()))
    p = g / np.repeat(np.add.reduceat(g, starts), leaves)
    q = h / np.repeat(np.add.reduceat(h, starts), leaves)
    for kind in (np.int64, np.int32, np.uint64):
        found = named("kl").of_masses(p, q, starts.astype(kind))
        assert found == pytest.approx(np.add.reduceat(p * np.log(p / q), starts), rel=1e-12)
        plugged = named("kl").plug(g, h, starts.astype(kind))
        assert plugged == pytest.approx(found, rel=1e-9)
    assert named("kl").of_masses(p[:0], q[:0], starts[:0]).shape == (0,)


@pytest.mark.parametrize("name", ALL)
def test_equal_masses_are_at_distance_zero(name: str) -> None:
    p, _, starts = some_draws(3)
    found = named(name).of_masses(p, p.copy(), starts)
    assert (found >= 0).all()
    assert found == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_nearly_equal_masses_never_go_negative(name: str) -> None:
    p, _, starts = some_draws(4)
    leaves = np.diff(starts, append=p.size)
    q = p * np.random.default_rng(4).normal(1, 1e-12, p.size)
    q /= np.repeat(np.add.reduceat(q, starts), leaves)
    assert (named(name).of_masses(p, q, starts) >= 0).all()


@pytest.mark.parametrize(
    ("left", "right", "factor"),
    [
        ("tsallis:2", "chi2", 1.0), ("alpha:2", "chi2", 0.5),
        ("alpha:0.5", "squared_hellinger", 4.0), ("tsallis:0.5", "squared_hellinger", 2.0),
        ("renyi:1.0000001", "kl", 1.0), ("renyi:0.9999999", "kl", 1.0),
        ("tsallis:1.0000001", "kl", 1.0), ("alpha:0.9999999", "kl", 1.0),
        ("alpha:1e-9", "reverse_kl", 1.0), ("alpha:-1e-9", "reverse_kl", 1.0),
        ("renyi:1e17", "renyi:inf", 1.0),
    ],
)  # fmt: skip
def test_identities_within_the_family(left: str, right: str, factor: float) -> None:
    p, q, starts = some_draws(5)
    p, q = p + 1e-3, q + 1e-3  # moderate ratios, so that orders near a limit are near in value
    for x in (p, q):
        x /= np.repeat(np.add.reduceat(x, starts), np.diff(starts, append=x.size))
    found = named(left).of_masses(p, q, starts)
    assert found == pytest.approx(factor * named(right).of_masses(p, q, starts), rel=1e-5, abs=1e-9)


def test_identities_between_formulas() -> None:
    p, q, starts = some_draws(6)

    def value(name: str, x: FloatArray = p, y: FloatArray = q) -> FloatArray:
        return named(name).of_masses(x, y, starts)

    assert value("hellinger") ** 2 == pytest.approx(value("squared_hellinger"))
    assert value("renyi:0.5") == pytest.approx(-2 * np.log1p(-value("squared_hellinger")))
    assert value("renyi:2") == pytest.approx(np.log1p(value("chi2")))
    assert value("jeffreys") == pytest.approx(value("kl") + value("reverse_kl"))
    assert value("reverse_kl") == pytest.approx(value("kl", q, p))
    assert value("alpha:-0.3") == pytest.approx(value("alpha:1.3", q, p))
    for symmetric in ("tv", "hellinger", "js", "jeffreys", "alpha:0.5"):
        assert value(symmetric) == pytest.approx(value(symmetric, q, p))
    m = (p + q) / 2
    assert value("js") == pytest.approx((value("kl", p, m) + value("kl", q, m)) / 2)


def test_inequalities_between_divergences() -> None:
    p, q, starts = some_draws(7)
    tv, hellinger, kl = (named(x).of_masses(p, q, starts) for x in ("tv", "hellinger", "kl"))
    room = 1e-12
    assert (hellinger**2 <= tv + room).all()
    assert (tv <= math.sqrt(2) * hellinger + room).all()
    assert (tv <= np.sqrt(kl / 2) + room).all()  # Pinsker
    orders = ("0.1", "0.5", "0.99", "1", "1.01", "2", "5", "100", "inf")
    rising = np.array([named(f"renyi:{order}").of_masses(p, q, starts) for order in orders])
    assert (np.diff(rising, axis=0) >= -1e-9).all()


@pytest.mark.parametrize(
    ("phi", "name"),
    [
        (lambda t: -np.log(t), "kl"),
        (lambda t: t * np.log(t), "reverse_kl"),
        (lambda t: t * np.log(t) - t + 1, "reverse_kl"),
        (lambda t: np.abs(t - 1) / 2, "tv"),
        (lambda t: 1 - np.sqrt(t), "squared_hellinger"),
        (lambda t: (t - 1) ** 2 / t, "chi2"),
        (lambda t: (t**1.3 - 1) / 0.39, "alpha:-0.3"),
    ],
)
def test_a_function_gives_the_divergence_of_the_paper(phi: Callable[..., Any], name: str) -> None:
    p, q, starts = some_draws(8)
    expected = named(name)
    found = parse(phi, "draws")
    assert found.name == "phi"
    assert found.of_masses(p, q, starts) == pytest.approx(
        expected.of_masses(p, q, starts), rel=1e-9, abs=1e-9
    )
    assert found.mean_needs_delta_above == pytest.approx(expected.mean_needs_delta_above)
    if expected.mean_needs_delta_above > 0:
        assert found.empty_set == expected.empty_set


def test_masses_as_far_apart_as_floats_go() -> None:
    """Two sets that share no cell: finite wherever the number itself fits into a float."""
    p, q = [1 - TINY, TINY], [TINY, 1 - TINY]
    far = -math.log(TINY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert one("kl", p, q) == pytest.approx(far)
        assert one("jeffreys", p, q) == pytest.approx(2 * far)
        assert one("renyi:inf", p, q) == pytest.approx(far)
        for order in ("1.5", "2", "3", "50", "1e300"):
            power = float(order)
            expected = far if power > 1e18 else far * power / (power - 1) - far / (power - 1)
            assert one(f"renyi:{order}", p, q) == pytest.approx(expected)
        assert one("renyi:0.5", p, q) == pytest.approx(-2 * math.log(2 * math.sqrt(TINY)))
        assert one("renyi:1e-6", p, q) == pytest.approx(1e-6 * far, rel=1e-3)
        assert one("chi2", p, q) == pytest.approx(1 / TINY)
        assert one("tsallis:2", p, q) == pytest.approx(1 / TINY)
        assert one("tsallis:3", p, q) == math.inf  # it is 1e615
        assert one("alpha:-2", p, q) == math.inf
        assert one("alpha:0.5", p, q) == pytest.approx(4)
        assert one("js", p, q) == pytest.approx(math.log(2))
        assert one("tv", p, q) == one("hellinger", p, q) == one("squared_hellinger", p, q) == 1


def test_plain_powers_would_overflow_where_the_integral_does_not() -> None:
    """p^3 q^-2 with all masses small: the direct product is inf or nan, the answer 1e216."""
    p, q = np.array([1.0, 1e-100]), np.array([1.0, 1e-258])
    with np.errstate(all="ignore"):
        assert not np.isfinite(np.sum(p**3 * q**-2.0))
    assert one("tsallis:3", p, q) == pytest.approx(1e216 / 2)
    assert one("renyi:3", p, q) == pytest.approx(216 * math.log(10) / 2)


# --- posterior means ----------------------------------------------------------------------------


def standard_errors_off(divergence: Divergence, a: FloatArray, b: FloatArray, seed: int) -> float:
    """How far the closed form is from the average of Dirichlet draws, in standard errors."""
    rng, draws = np.random.default_rng(seed), 40_000
    p, q = (np.maximum(rng.dirichlet(x, draws).ravel(), TINY) for x in (a, b))
    values = divergence.of_masses(p, q, np.arange(draws) * a.size)
    mean = float(divergence.mean_given_partition(a, b, np.array([0]))[0])
    return float(abs(values.mean() - mean) / (values.std() / math.sqrt(draws)))


@pytest.mark.parametrize("name", CLOSED_FORM)
@pytest.mark.parametrize("leaves", [1, 2, 5, 40])
def test_closed_form_mean_agrees_with_simulation(name: str, leaves: int) -> None:
    rng = np.random.default_rng(leaves)
    # Enough mass in every cell that the draws themselves have a variance, empty cells elsewhere.
    delta = 3.5 if named(name).mean_needs_delta_above else 0.5
    a = np.float64(delta) + rng.poisson(3, leaves)
    b = np.float64(delta) + rng.poisson(4, leaves)
    if leaves == 1:
        mean = named(name).mean_given_partition(a, b, np.array([0]))
        assert mean == pytest.approx(0, abs=1e-10)
    else:
        assert standard_errors_off(named(name), a, b, seed=leaves) < 4


@pytest.mark.parametrize("wrong_by", [0, 1])
def test_simulation_catches_a_wrong_closed_form(wrong_by: int) -> None:
    """E[p log p] with digamma(a) in place of digamma(a + 1) must not pass."""
    term = Term(
        leaf=lambda a, b: a * (special.digamma(a + 1 - wrong_by) - special.digamma(b)),
        scale=lambda A, B: 1 / A,
    )
    mean = Additive((term,), lambda A, B: special.digamma(B) - special.digamma(A + 1 - wrong_by))
    suspect = Divergence("suspect", "suspect", named("kl").formula, mean)
    off = standard_errors_off(suspect, np.array([0.5, 3.5, 9.5]), np.array([2.5, 0.5, 5.5]), seed=1)
    assert (off > 10) if wrong_by else (off < 4)


@pytest.mark.parametrize("name", CLOSED_FORM)
def test_closed_form_mean_agrees_with_quadrature(name: str) -> None:
    """Two leaves: an integral over two Beta variables, by the quadrature made for them."""
    a, b = np.array([4.5, 7.5]), np.array([6.5, 3.5])

    def beta_rule(x: float, y: float) -> tuple[FloatArray, FloatArray]:
        nodes, weights = special.roots_jacobi(100, y - 1, x - 1)
        return (1 + nodes) / 2, weights / weights.sum()

    p, p_weights = beta_rule(*a)
    q, q_weights = beta_rule(*b)
    pairs = [np.stack([x, 1 - x], axis=-1) for x in np.meshgrid(p, q, indexing="ij")]
    values = named(name).of_masses(pairs[0].ravel(), pairs[1].ravel(), np.arange(10_000) * 2)
    expected = p_weights @ values.reshape(100, 100) @ q_weights
    found = named(name).mean_given_partition(a, b, np.array([0]))
    assert found == pytest.approx(expected, rel=1e-6)


def test_closed_form_means_of_many_draws_at_once() -> None:
    rng = np.random.default_rng(11)
    leaves = rng.integers(1, 9000, 30)
    starts = np.cumsum(leaves) - leaves
    a, b = 1.5 + rng.poisson(0.7, (2, leaves.sum()))
    for name in CLOSED_FORM:
        together = named(name).mean_given_partition(a, b, starts)
        for draw in (0, 7, 29):
            cells = slice(starts[draw], starts[draw] + leaves[draw])
            alone = named(name).mean_given_partition(a[cells], b[cells], np.array([0]))
            assert together[draw] == pytest.approx(alone[0], rel=1e-9, abs=1e-12)


def test_means_with_a_million_points_keep_their_digits() -> None:
    """With much data the posterior is narrow: the mean comes close to the plug-in."""
    rng = np.random.default_rng(12)
    a, b = 1.5 + rng.integers(10_000, 40_000, (2, 50)).astype(float)
    start = np.array([0])
    for name in CLOSED_FORM:
        mean, plug = named(name).mean_given_partition(a, b, start), named(name).plug(a, b, start)
        assert mean == pytest.approx(plug, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("kl", 0.0), ("reverse_kl", 0.0), ("jeffreys", 0.0), ("js", 0.0), ("tv", 0.0),
        ("hellinger", 0.0), ("squared_hellinger", 0.0), ("chi2", 1.0), ("tsallis:2", 1.0),
        ("tsallis:1.4", 0.4), ("tsallis:0.5", 0.0), ("alpha:0.5", 0.0), ("alpha:3", 2.0),
        ("alpha:-0.4", 0.4), ("alpha:-2", 2.0), ("renyi:2", 0.0), ("renyi:50", 0.0),
        ("renyi:inf", 0.0), ("renyi:0.5", 0.0),
    ],
)  # fmt: skip
def test_when_the_mean_exists(name: str, needed: float) -> None:
    divergence = named(name)
    assert divergence.mean_exists(needed + 0.01)
    assert divergence.why_no_mean(needed + 0.01) == ""
    assert not divergence.mean_exists(needed)
    if needed:
        sentence = divergence.why_no_mean(needed)
        assert "does not exist with delta" in sentence
        assert f"above {needed:g}" in sentence
        assert ("first set" in sentence) == name.startswith("alpha:-")


@pytest.mark.parametrize("delta", [0.05, 0.5, 1.0, 1.5])
def test_the_mean_of_renyi_is_finite_where_that_of_chi2_is_not(delta: float) -> None:
    """p = (1/2, 1/2) against q = (m, 1 - m), m ~ Beta(delta, delta): an empty cell.

    The mean over m > cut has to settle as the cut goes to zero if the mean exists, and grows like
    cut^(delta - 1) if it does not. Integrated in log m, where both are smooth.
    """

    def mean_above(name: str, cut: float) -> float:
        def integrand(log_m: float) -> float:
            m = math.exp(log_m)
            log_density = delta * log_m + (delta - 1) * math.log1p(-m)
            density = math.exp(log_density - special.betaln(delta, delta))
            return density * one(name, [0.5, 0.5], [m, 1 - m])

        pieces = np.append(np.arange(math.log(cut), math.log(0.5), 20.0), math.log(0.5))
        halves = [integrate.quad(integrand, *pair)[0] for pair in pairwise(pieces)]
        return 2 * sum(halves)  # the other half of the interval mirrors this one

    exact = -math.log(4) + 2 * (special.digamma(2 * delta) - special.digamma(delta))
    assert mean_above("renyi:2", 1e-300) == pytest.approx(exact, rel=1e-6)
    if named("chi2").mean_exists(delta):
        assert mean_above("chi2", 1e-60) == pytest.approx(mean_above("chi2", 1e-40), rel=1e-9)
    else:
        grown = mean_above("chi2", 1e-60) / mean_above("chi2", 1e-40)
        assert grown == pytest.approx(1.5 if delta == 1 else 1e20 ** (1 - delta), rel=0.02)


def test_leaf_without_a_mean_is_infinite_not_a_wrong_number() -> None:
    """Γ(b − 1)/Γ(b) is negative at b = 0.5: no plausible-looking mean must come out of it."""
    a = np.array([3.5, 7.5])
    mean = named("chi2").mean_given_partition(a, np.array([0.5, 9.5]), np.array([0]))
    assert mean[0] == math.inf


def test_orders_next_to_a_limit_have_no_closed_form() -> None:
    assert named("alpha:1.0001").additive is None
    assert named("alpha:-0.0001").additive is None
    assert named("tsallis:1.01").additive is not None
    with pytest.raises(TypeError, match="no closed form"):
        named("tv").mean_given_partition(np.ones(2), np.ones(2), np.array([0]))


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("KL", "kl"), (" Reverse KL ", "reverse_kl"), ("reverse-kl", "reverse_kl"),
        ("Squared Hellinger", "squared_hellinger"), ("Total variation", "tv"),
        ("Chi-squared", "chi2"),
        ("Jensen\N{EN DASH}Shannon", "js"), ("renyi:2", "renyi:2"), ("Rényi: 2.0", "renyi:2"),
        ("RENYI:inf", "renyi:inf"), ("renyi:0.25", "renyi:0.25"), ("alpha:-0.5", "alpha:-0.5"),
        ("renyi:1", "kl"), ("tsallis:1.0", "kl"), ("alpha:1", "kl"), ("alpha:0", "reverse_kl"),
        ("alpha:-0", "reverse_kl"), ("renyi:1e30", "renyi:inf"),
    ],
)  # fmt: skip
def test_names_are_forgiving(text: str, canonical: str) -> None:
    divergence = named(text)
    assert divergence.name == canonical
    assert divergence is named(canonical)
    assert parse(divergence, "draws") is divergence
    assert divergence.label


def test_every_name_in_the_lists_is_known() -> None:
    for name in (*NAMES, *SUMMARY):
        assert named(name).name == name
    assert named("renyi:2").label == "Rényi divergence of order 2"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kll", ["'kll'", "Did you mean 'kl'?", "'hellinger'", "'renyi:2'"]),
        ("helinger", ["Did you mean 'hellinger'?"]),
        ("wasserstein", ["be a known name", "'tv'"]),
        ("", ["be a known name"]),
        ("kl:2", ["'kl' without an order"]),
        ("renyi", ["a number as its order", "'renyi:2'"]),
        ("renyi:two", ["a number as its order"]),
        ("alpha:nan", ["a number as its order"]),
        ("renyi:0", ["positive", "always 0"]),
        ("renyi:-1", ["-0.5 times order 2", "exchanged", "'renyi:2'"]),
        ("renyi:-inf", ["-1 times order inf", "'renyi:inf'"]),
        ("tsallis:0", ["above 0", "always 0"]),
        ("tsallis:-2", ["'alpha:-2'"]),
        ("tsallis:inf", ["'renyi:inf'"]),
        ("alpha:inf", ["between -1000 and 1000"]),
        (3, ["a name or a convex function", "3"]),
        (None, ["None"]),
    ],
)
def test_bad_names_are_refused_with_a_way_out(text: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, "interval")
    message = str(caught.value)
    assert message.startswith("The 'divergence' parameter of interval() must ")
    for word in words:
        assert word in message


def test_negative_renyi_orders_are_what_the_refusal_says() -> None:
    p, q = [0.2, 0.3, 0.5], [0.5, 0.4, 0.1]
    assert naive("renyi:-1", p, q) == pytest.approx(-0.5 * one("renyi:2", q, p))


# --- functions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phi", "words"),
    [
        (lambda t: t**2, ["phi(1) = 1", "Subtract"]), (np.log, ["convex", "bends down"]),
        (lambda t: np.sin(t - 1), ["convex"]), (lambda t: -np.abs(t - 1), ["convex"]),
        (lambda t: math.log(t), ["returns an array", "NumPy"]),
        (lambda t: 0.0 if t > 1 else 1.0, ["returns an array"]),
        (lambda t: 0.0, ["shape ()"]), (lambda t: t[:-1] - 1, ["shape (60,)"]),
        (lambda t: ["a"] * len(t), ["returns an array"]),
        (lambda t: np.log(t - 0.5), ["finite"]), (lambda: 0.0, ["returns an array"]),
    ],
)  # fmt: skip
def test_bad_functions_are_refused(phi: Callable[..., Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        parse(phi, "draws")
    for word in words:
        assert word in str(caught.value)


def test_function_names_and_growth() -> None:
    def exponential(t: FloatArray) -> FloatArray:
        return np.exp(t) - math.e

    fast = parse(exponential, "draws")
    assert fast.name == "phi:exponential"
    assert fast.label == "divergence with phi = exponential"
    assert not fast.mean_exists(1e6)
    assert fast.why_no_mean(2) == (
        "The mean of the divergence with phi = exponential does not exist with delta=2: cells "
        "without points of the first set make it infinite; read the median."
    )
    assert parse(lambda t: np.exp(-t) - math.exp(-1), "draws").mean_exists(0.01)
    assert parse(lambda t: t**5 - 1, "draws").mean_needs_delta_above == pytest.approx(4)
    assert parse(lambda t: 0 * t, "draws").mean_exists(0.01)


def test_a_function_with_nan_in_the_tails_is_caught_when_it_happens() -> None:
    def tail(t: FloatArray) -> FloatArray:
        return np.where(t > 1e10, np.nan, t - 1)

    divergence = parse(tail, "draws")
    with pytest.raises(InputError, match="NaN at phi"):
        divergence.of_masses(np.array([1e-20, 1.0]), np.array([0.5, 0.5]), np.array([0]))

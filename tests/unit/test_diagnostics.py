"""Convergence of chains, its warnings, and the invariants of stored partitions."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cobpm.diagnostics import (
    CobpmWarning,
    Convergence,
    ConvergenceWarning,
    check_partitions,
    convergence,
    warnings_for,
)


def autoregressive(rng: np.random.Generator, chains: int, draws: int, memory: float) -> Any:
    """Chains with a known effective size: draws * (1 - memory) / (1 + memory) each."""
    x = np.empty((chains, draws))
    x[:, 0] = rng.normal(size=chains)
    noise = rng.normal(scale=math.sqrt(1 - memory**2), size=(chains, draws))
    for step in range(1, draws):
        x[:, step] = memory * x[:, step - 1] + noise[:, step]
    return x


# --- convergence --------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_effective_draws_of_chains_with_known_memory(memory: float) -> None:
    x = autoregressive(np.random.default_rng(1), 4, 5000, memory)
    found = convergence("number of leaves", x)
    assert found.quantity == "number of leaves"
    assert found.chains == 4
    assert found.rhat < 1.01
    assert found.ess == pytest.approx(20_000 * (1 - memory) / (1 + memory), rel=0.15)


def test_chains_in_different_places_are_caught() -> None:
    x = np.random.default_rng(2).normal(size=(4, 1000))
    x[0] += 2
    found = convergence("plug-in KL", x)
    assert found.rhat > 1.2
    assert found.ess < 50


def test_one_chain_is_judged_by_its_halves() -> None:
    still = np.random.default_rng(3).normal(size=(1, 2000))
    assert convergence("l", still).rhat < 1.02
    assert convergence("l", still + np.linspace(0, 4, 2000)).rhat > 1.2


def test_integer_draws_with_many_ties() -> None:
    leaves = np.random.default_rng(4).poisson(3, (4, 2000))
    found = convergence("number of leaves", leaves)
    assert found.rhat < 1.01
    assert found.ess > 6000
    coin = np.random.default_rng(5).integers(0, 2, (4, 1000))  # folded at its median: constant
    assert convergence("number of leaves", coin).rhat < 1.02


def test_where_nothing_moves() -> None:
    assert convergence("l", np.full((4, 100), 7)) == Convergence("l", 1.0, 400.0, 4)
    stuck = np.repeat([[1.0], [1.0], [2.0]], 100, axis=1)
    assert convergence("l", stuck) == Convergence("l", math.inf, 3.0, 3)


def test_one_stuck_chain_among_moving_ones() -> None:
    x = np.random.default_rng(6).normal(size=(4, 500))
    x[2] = 3.0
    found = convergence("l", x)
    assert found.rhat > 1.2
    assert math.isfinite(found.ess)


@pytest.mark.parametrize("shape", [(4, 2), (4, 3), (1, 7), (2, 2)])
def test_too_few_draws_give_nan_not_an_error(shape: tuple[int, int]) -> None:
    assert math.isnan(convergence("l", np.random.default_rng(7).normal(size=shape)).rhat)


def test_nan_draws_give_nan_and_infinite_ones_are_ranked() -> None:
    x = np.random.default_rng(8).normal(size=(4, 500))
    x[1, 3] = np.inf
    assert convergence("l", x).rhat < 1.02
    x[1, 3] = np.nan
    found = convergence("l", x)
    assert math.isnan(found.rhat)
    assert math.isnan(found.ess)


@pytest.mark.parametrize("shape", [(10,), (2, 3, 4), (0, 5), (4, 0)])
def test_wrong_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="shape"):
        convergence("l", np.zeros(shape))


def test_importing_the_module_does_not_import_arviz() -> None:
    code = "import sys, cobpm.diagnostics; sys.exit('arviz_stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- warnings -----------------------------------------------------------------------------------


def test_good_chains_give_no_warning() -> None:
    assert warnings_for([Convergence("number of leaves", 1.01, 900.0, 4)]) == []
    assert warnings_for([]) == []


def test_disagreement_names_quantity_figure_and_remedy() -> None:
    bad = Convergence("number of leaves", 1.376, 30.0, 4)
    (sentence,) = warnings_for([bad, Convergence("plug-in KL", 1.0, 2000.0, 4)], kernel="guided")
    assert sentence == (
        "The chains do not agree on the number of leaves: R-hat is 1.38, and should be at most "
        '1.05. Try engine="exact" (independent draws), kernel="cherry", more draws and burn_in or '
        "fewer columns."
    )
    assert "cherry" not in warnings_for([bad], kernel="cherry")[0]


def test_few_effective_draws_and_limits() -> None:
    slow = Convergence("plug-in KL", 1.02, 210.4, 4)
    (sentence,) = warnings_for([slow])
    assert "plug-in KL are worth only 210 independent ones, and should be worth 400." in sentence
    assert warnings_for([slow], ess_limit=50) == []
    assert warnings_for([slow], ess_limit=50, rhat_limit=1.01) != []


def test_unknown_and_infinite_figures() -> None:
    (sentence,) = warnings_for([Convergence("number of leaves", math.nan, math.nan, 4)])
    assert sentence.startswith("It cannot be told whether the chains agree on the number of leaves")
    (sentence,) = warnings_for([Convergence("number of leaves", math.inf, 4.0, 4)])
    assert "R-hat is inf" in sentence


def test_warnings_can_be_filtered_as_one_kind() -> None:
    assert issubclass(ConvergenceWarning, CobpmWarning)
    assert issubclass(CobpmWarning, UserWarning)


# --- partitions ---------------------------------------------------------------------------------

Partitions = dict[str, Any]


def random_partitions(seed: int, draws: int = 200, d: int = 3) -> Partitions:
    """Valid trees of random shape, with the points of two sets dealt to their leaves."""
    rng = np.random.default_rng(seed)
    sizes = np.array([30, 20])
    trees: list[list[int]] = []
    counts: list[NDArray[np.int64]] = []
    for _ in range(draws):
        tree = [-1]
        for _ in range(rng.integers(0, 12)):
            leaf = rng.choice(np.flatnonzero(np.array(tree) == -1))
            tree[leaf : leaf + 1] = [int(rng.integers(d)), -1, -1]
        leaves = tree.count(-1)
        trees.append(tree)
        counts.append(np.stack([rng.multinomial(n, np.full(leaves, 1 / leaves)) for n in sizes], 1))
    nodes, leaves_of = [len(tree) for tree in trees], [len(count) for count in counts]
    return {
        "splits": np.concatenate(trees).astype(np.int16),
        "node_starts": np.cumsum(nodes) - nodes,
        "counts": np.concatenate(counts).astype(np.int32),
        "leaf_starts": np.cumsum(leaves_of) - leaves_of,
        "sizes": sizes,
        "d": d,
    }


def partitions(trees: list[list[int]], d: int = 2, leaves: list[int] | None = None) -> Partitions:
    """Given trees, with one set whose single point is in the first leaf of each."""
    leaves = [tree.count(-1) for tree in trees] if leaves is None else leaves
    nodes = [len(tree) for tree in trees]
    starts = np.cumsum(leaves) - leaves
    counts = np.zeros((sum(leaves), 1), dtype=np.int32)
    counts[starts] = 1
    return {
        "splits": np.concatenate(trees).astype(np.int16),
        "node_starts": np.cumsum(nodes) - nodes,
        "counts": counts,
        "leaf_starts": starts,
        "sizes": [1],
        "d": d,
    }


@pytest.mark.parametrize("seed", range(5))
def test_valid_partitions_pass(seed: int) -> None:
    stored = random_partitions(seed)
    assert check_partitions(**stored) == []
    stored["node_starts"] = stored["node_starts"].astype(np.uint64)
    stored["leaf_starts"] = stored["leaf_starts"].astype(np.uint32)
    assert check_partitions(**stored) == []


@pytest.mark.parametrize(
    "tree",
    [
        [0, -1],  # a child is missing
        [-1, -1],  # complete before its last node
        [-1, 0, -1],  # goes on after it is complete, with as many leaves as there should be
        [0, -1, -1, -1],
        [0, 1, -1, -1],
        [0],
    ],
)
def test_incomplete_trees_are_counted(tree: list[int]) -> None:
    good = [[-1], [0, -1, 1, -1, -1]]
    messages = check_partitions(**partitions([good[0], tree, good[1], tree], leaves=[1, 2, 3, 2]))
    assert messages[0] == "2 of 4 partitions are not complete trees"
    assert not any("not complete" in m for m in check_partitions(**partitions(good)))


def test_neighbours_cannot_make_up_for_each_other() -> None:
    """One node too few in a draw, one too many in the next: right in total, wrong in each."""
    messages = check_partitions(**partitions([[0, -1], [-1, -1, -1, 0]], leaves=[2, 2]))
    assert "2 of 2 partitions are not complete trees" in messages


def test_columns_must_exist() -> None:
    message = "1 of 2 partitions split a column that is not in 0..1"
    assert check_partitions(**partitions([[2, -1, -1], [1, -1, -1]])) == [message]
    assert check_partitions(**partitions([[-2, -1, -1], [1, -1, -1]])) == [message]


def test_counts_must_add_up() -> None:
    stored = random_partitions(9)
    stored["counts"][stored["leaf_starts"][[3, 5, 8]], 1] += 1
    expected = "3 of 200 partitions have counts that do not add up to the sizes of the sets"
    assert check_partitions(**stored) == [expected]


def test_negative_counts_are_found_even_if_they_add_up() -> None:
    stored = partitions([[0, -1, -1], [0, -1, -1]])
    stored["counts"][:2, 0] = [2, -1]
    assert check_partitions(**stored) == ["1 of 2 partitions have negative counts"]


def test_leaves_of_tree_and_counts_must_match() -> None:
    stored = partitions([[0, -1, -1], [-1]], leaves=[1, 2])
    expected = "2 of 2 partitions have counts for more or fewer leaves than they have"
    assert check_partitions(**stored) == [expected]


@pytest.mark.parametrize("which", ["node_starts", "leaf_starts"])
@pytest.mark.parametrize("change", ["late", "repeated", "beyond", "short"])
def test_starts_must_divide_the_arrays(which: str, change: str) -> None:
    stored = random_partitions(10)
    starts = stored[which].copy()
    if change == "late":
        starts[0] = 1
    elif change == "repeated":
        starts[4] = starts[5]
    elif change == "beyond":
        starts[-1] = 10**6
    else:
        starts = starts[:-1]
    (message,) = check_partitions(**{**stored, which: starts})
    assert "do not divide" in message


def test_no_partitions_are_valid_partitions() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert check_partitions(none, none, none.reshape(0, 2), none, [3, 4], 2) == []
    assert check_partitions(np.array([-1]), none, none.reshape(0, 2), none, [3, 4], 2) != []

"""Can these draws be trusted? Convergence of chains, and invariants of stored partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.integer[Any]]


class CobpmWarning(UserWarning):
    """A result that needs care. Every warning of this package is one."""


class ConvergenceWarning(CobpmWarning):
    """Chains that have not converged, or too few effective draws."""


@dataclass(frozen=True)
class Convergence:
    """How well the chains agree on one quantity.

    Attributes:
        quantity: What was followed along the chains, in words.
        rhat: Rank-normalised split R-hat; 1 is agreement, NaN if there are too few draws to tell.
        ess: Effective number of draws in the bulk, NaN if there are too few draws to tell.
        chains: The number of chains.
    """

    quantity: str
    rhat: float
    ess: float
    chains: int


def convergence(quantity: str, draws: ArrayLike) -> Convergence:
    """Judge one quantity by R-hat and effective draws.

    Args:
        quantity: What the draws are of, in words, for messages.
        draws: One row per chain; at least 4 draws in each (8 if there is only one chain).
    """
    x = np.asarray(draws, dtype=np.float64)
    if x.ndim != 2 or x.size == 0:
        raise ValueError(f"draws must have the shape (chains, draws), got {x.shape}")
    chains = len(x)
    if np.isnan(x).any() or x.shape[1] < 4:
        return Convergence(quantity, np.nan, np.nan, chains)
    # Where nothing moves, variances are 0 and their ratio says nothing: decide by the values.
    if (x == x[:, :1]).all():
        agreed = bool((x == x[0, 0]).all())
        rhat, ess = (1.0, float(x.size)) if agreed else (np.inf, float(chains))
        return Convergence(quantity, rhat, ess, chains)

    # Slow to import, and only chains need it.
    from arviz_stats.base.array import array_stats

    stats: Any = array_stats  # without type hints

    # Drifting within one chain shows as disagreement between its halves.
    half = x.shape[1] // 2
    rows = x if chains > 1 else np.stack([x[0, :half], x[0, -half:]])
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat = float(stats.rhat(rows))
        ess = float(stats.ess(x, method="bulk"))
    return Convergence(quantity, rhat, ess, chains)


def warnings_for(
    results: Sequence[Convergence],
    *,
    rhat_limit: float = 1.05,
    ess_limit: float = 100.0,
    kernel: str | None = None,
) -> list[str]:
    """Sentences for what has not converged: the quantity, the figure and the remedy.

    Args:
        results: What was followed along the chains.
        rhat_limit: The largest R-hat that passes.
        ess_limit: The smallest number of effective draws per chain that passes.
        kernel: The kernel of the chains, so that it is not recommended to who uses it already.
    """
    remedies = ['engine="exact" (independent draws)', "more draws and burn_in", "fewer columns"]
    if kernel != "cherry":
        remedies.insert(1, 'kernel="cherry"')
    remedy = f"Try {', '.join(remedies[:-1])} or {remedies[-1]}."
    sentences = []
    for result in results:
        needed = ess_limit * result.chains
        if np.isnan(result.rhat) or np.isnan(result.ess):
            sentences.append(
                f"It cannot be told whether the chains agree on the {result.quantity}: there are "
                'too few draws, or undefined ones. Ask for more draws, or for engine="exact".'
            )
        elif result.rhat > rhat_limit:
            sentences.append(
                f"The chains do not agree on the {result.quantity}: R-hat is {result.rhat:.2f}, "
                f"and should be at most {rhat_limit:g}. {remedy}"
            )
        elif result.ess < needed:
            sentences.append(
                f"The draws of the {result.quantity} are worth only {result.ess:.0f} independent "
                f"ones, and should be worth {needed:.0f}. {remedy}"
            )
    return sentences


def check_partitions(
    splits: IntArray,
    node_starts: IntArray,
    counts: IntArray,
    leaf_starts: IntArray,
    sizes: ArrayLike,
    d: int,
) -> list[str]:
    """Verify stored partitions; an empty list means that all are valid.

    Args:
        splits: The nodes of all draws in preorder, one draw after another: the column of a split
            (its lower half comes first), or -1 for a leaf.
        node_starts: Where each draw begins in `splits`.
        counts: One row per leaf, one column per sample set, in the order of the leaves in `splits`.
        leaf_starts: Where each draw begins in `counts`.
        sizes: The number of points in each sample set.
        d: The number of columns that can be split.
    """
    node_starts, leaf_starts = node_starts.astype(np.int64), leaf_starts.astype(np.int64)
    draws = len(node_starts)
    for name, starts, end in (
        ("nodes", node_starts, len(splits)),
        ("leaves", leaf_starts, len(counts)),
    ):
        if len(starts) != draws or not _divide(starts, end):
            return [f"the {draws} partitions do not divide the {end} {name} among them"]
    if draws == 0:
        return []

    # In preorder a split opens one more place than it fills and a leaf fills one. Starting from one
    # open place, a complete tree fills the last place with its last node and not before.
    is_leaf = splits == -1
    nodes = np.diff(node_starts, append=len(splits))
    filled = np.cumsum(np.where(is_leaf, 1, -1), dtype=np.int64)
    before = np.append(0, filled)[node_starts]
    full = filled - np.repeat(before, nodes) >= 1
    last = node_starts + nodes - 1
    incomplete = ~full[last] | (np.add.reduceat(full, node_starts, dtype=np.int64) > 1)
    outside = np.logical_or.reduceat((splits < -1) | (splits >= d), node_starts)
    leaves = np.add.reduceat(is_leaf, node_starts, dtype=np.int64)
    unmatched = leaves != np.diff(leaf_starts, append=len(counts))
    negative = np.logical_or.reduceat((counts < 0).any(axis=1), leaf_starts)
    totals = np.add.reduceat(counts, leaf_starts, axis=0, dtype=np.int64)
    lost = (totals != np.asarray(sizes)).any(axis=1)
    found = {
        "are not complete trees": incomplete,
        f"split a column that is not in 0..{d - 1}": outside,
        "have counts for more or fewer leaves than they have": unmatched,
        "have negative counts": negative,
        "have counts that do not add up to the sizes of the sets": lost,
    }
    return [
        f"{int(wrong.sum())} of {draws} partitions {what}"
        for what, wrong in found.items()
        if wrong.any()
    ]


def _divide(starts: IntArray, end: int) -> bool:
    """Whether the starts cut 0..end into consecutive pieces with something in each."""
    edges = np.append(starts, end)
    return edges[0] == 0 and bool((np.diff(edges) > 0).all())

"""The compiled core. Threads never change a result."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

BITS: int

_Progress = Callable[[float], None] | None
_Floats = NDArray[np.float64]
_Ids = NDArray[np.int64]
_Codes = NDArray[np.uint64]
_Sets = NDArray[np.uint16]
_Weights = NDArray[np.uint32] | None  # how many points a row stands for
_Resolution = NDArray[np.uint8] | None  # halvings that each column can take
# Splits in preorder, nodes per partition, counts per leaf, leaves per partition.
_Packed = tuple[NDArray[np.int16], _Ids, NDArray[np.uint32], _Ids]

class _OnRegions:
    """Regions, and what can be asked of them whatever the recursion over them."""

    def expand(self, ids: _Ids, threads: int, progress: _Progress = None) -> None:
        """Make the halves of regions known."""
    def plant(
        self, splits: NDArray[np.int16], starts: _Ids, threads: int, progress: _Progress = None
    ) -> None:
        """Make all regions of some partitions known."""
    def split_log_odds(self, ids: _Ids) -> _Floats:
        """Log-odds that a region is split rather than a leaf, given that it is reached."""
    def frontier(self) -> _Ids:
        """Regions with two points or more whose halves are unknown."""
    def frontier_points(self) -> int:
        """Points in those regions together: the cost of expanding them, per column."""
    def forget_points(self) -> None:
        """Drop the lists of points that expanding needs, when there is no more of it to come."""
    def counts(self) -> NDArray[np.uint32]:
        """Points of each set in each region."""
    @property
    def size(self) -> int: ...
    @property
    def bytes(self) -> int: ...

class Exact(_OnRegions):
    """Regions, and the exact recursion of the paper's posterior over them."""

    def __init__(
        self,
        codes: _Codes,
        sets: _Sets,
        sets_count: int,
        base_depth: int,
        log_gamma: _Floats,
        threads: int,
        progress: _Progress = None,
        weights: _Weights = None,
        resolution: _Resolution = None,
    ) -> None: ...
    def up(self, log_tilt: float, threads: int, progress: _Progress = None) -> tuple[int, _Floats]:
        """Run the recursion: the fewest splits, and log(f[k] τ^k) of the root from there on."""
    def draw(
        self,
        cumulative: _Floats,
        first: int,
        draws: int,
        seed: int,
        threads: int,
        progress: _Progress = None,
    ) -> tuple[_Packed, _Ids, _Ids]:
        """Draw partitions.

        Also the splits of regions with two points or more at each depth, in all draws together,
        and leaves with two points or more whose halves are unknown, as often as drawn.
        """
    def expect(
        self,
        region_values: _Floats,
        empty_values: _Floats,
        single_values: _Floats,
        threads: int,
        progress: _Progress = None,
    ) -> _Floats:
        """E[sum of a function over leaves | number of splits], a column per function."""

class Ratio(_OnRegions):
    """Regions, and the exact recursion of the ratio model over them."""

    def __init__(
        self,
        codes: _Codes,
        sets: _Sets,
        sets_count: int,
        base_depth: int,
        concentrations: _Floats,
        stop: float,
        threads: int,
        progress: _Progress = None,
        weights: _Weights = None,
        resolution: _Resolution = None,
    ) -> None: ...
    def relabel(self, sets: _Sets, threads: int, progress: _Progress = None) -> None:
        """Give the points other sets; `up` must follow."""
    def up(self, threads: int, progress: _Progress = None) -> float:
        """Run the recursion: the log probability of all labels."""
    def permuted(
        self, seed: int, permutations: int, threads: int, progress: _Progress = None
    ) -> _Floats:
        """What `up` would return for random permutations of the labels, which stay as they are.

        Permutation b depends on the seed and b alone: it is the same one in every frame.
        """
    def given(self, drawn: NDArray[np.uint32], threads: int, progress: _Progress = None) -> _Floats:
        """What `up` would return for labels that were drawn elsewhere, 8 permutations to a block.

        `drawn` says how many of each point are of each set but the last, (blocks, points, 8 times
        the sets but the last): all permutations of the first set, then those of the second, …
        """
    def leaves(
        self, least: float, progress: _Progress = None
    ) -> tuple[_Ids, NDArray[np.uint32], _Floats, _Floats, float]:
        """All regions that may be leaves, their counts and their probabilities to be one.

        Halves of grown regions that hold less than two points are no regions of their own: for
        them, the expected number of leaves with a single point of each set, and without points.
        A region that is reached with a probability below `least` counts as a leaf.
        """
    def at_points(
        self,
        leaf_values: _Floats,
        single_values: _Floats,
        threads: int,
        progress: _Progress = None,
    ) -> _Floats:
        """Mean of functions of the leaf that holds a point, (points, functions).

        Functions are given by a row for each of `leaves`, and a row per set for leaves with a
        single point that are no regions of their own.
        """
    def draw(
        self, draws: int, seed: int, threads: int, progress: _Progress = None, whole: int = -1
    ) -> tuple[_Packed, _Ids]:
        """Draw partitions, the first `whole` of them a single leaf and all others not.

        A negative number lets chance say how many. A root that cannot be cut is always a leaf.
        Also leaves with two points or more whose halves are unknown, as often as drawn.
        """

class Counter:
    """Rows counted in the cells of a grid, piece by piece, in bounded memory."""

    def __init__(
        self, cuts: list[_Floats], even: list[bool], finest: int, bits: int, max_cells: int
    ) -> None: ...
    def add_rows(self, rows: _Floats) -> None:
        """Count the rows of a matrix."""
    def add_columns(self, columns: list[_Floats]) -> None:
        """Count the rows of a table given by its columns."""
    def add_cells(self, keys: NDArray[np.uint64], counts: NDArray[np.uint64], bits: int) -> None:
        """Count rows that were counted before, on the same grid, with this many bits."""
    def absorb(self, other: Counter) -> None:
        """Take over what another counter on the same grid counted; it is empty afterwards."""
    def coarsen(self, bits: int) -> None:
        """Give up bits until this many are left."""
    def cells(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Names of the cells in ascending order, and their counts."""
    @property
    def bits(self) -> int: ...
    @property
    def bits_so_far(self) -> int:
        """At least `bits`: rows that still wait were not looked through."""
    @property
    def size(self) -> int: ...

class BinCounter:
    """Values of a column counted by their leading bits, of which at most so many are told apart."""

    def __init__(self, most: int, dropped: int = 0) -> None: ...
    def add(self, values: _Floats) -> None:
        """Count some values."""
    def add_all(self, other: BinCounter) -> None:
        """Count what another counter has counted, of no more bins than here."""
    def bins(
        self,
    ) -> tuple[
        int, NDArray[np.uint64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]
    ]:
        """Bits given up; leading bits, count, smallest and largest value of each bin, in order."""

class Walk:
    """A chain to look at move by move."""

    def __init__(
        self,
        codes: _Codes,
        sets: _Sets,
        sets_count: int,
        log_gamma: _Floats,
        log_price: _Floats,
        kernel: str,
    ) -> None: ...
    def split(self, slot: int, column: int) -> None: ...
    def moves(self) -> list[tuple[list[int], float]]:
        """Every partition that the next step may lead to, in preorder, with its probability."""

def run_chains(
    codes: _Codes,
    sets: _Sets,
    sets_count: int,
    log_gamma: _Floats,
    log_price: _Floats,
    kernel: str,
    chains: int,
    burn_in: int,
    draws: int,
    thin: int,
    seed: int,
    threads: int,
    progress: _Progress = None,
    weights: _Weights = None,
    resolution: _Resolution = None,
) -> tuple[_Packed, _Floats]:
    """Run chains from a single leaf; also the share of moves each accepted."""

def move_on(
    codes: _Codes,
    sets: _Sets,
    sets_count: int,
    log_gamma: _Floats,
    log_price: _Floats,
    splits: NDArray[np.int16],
    node_start: _Ids,
    steps: int,
    seed: int,
    threads: int,
    progress: _Progress = None,
    weights: _Weights = None,
    resolution: _Resolution = None,
) -> _Packed:
    """Take every partition some steps along a cherry chain of its own."""

def count_up_to(ascending: _Floats, values: _Floats) -> _Ids:
    """How many of some ascending numbers are at most each value."""

def describe(
    splits: NDArray[np.int16], node_start: _Ids, leaf_start: _Ids, d: int, threads: int
) -> tuple[NDArray[np.uint16], _Floats]:
    """Depth of every leaf, and the log of the number of orders of every partition's splits."""

def locate(
    splits: NDArray[np.int16], node_start: _Ids, leaf_start: _Ids, codes: _Codes, threads: int
) -> _Ids:
    """Leaf that holds each point, in every partition."""

def box_masses(
    splits: NDArray[np.int16],
    node_start: _Ids,
    leaf_start: _Ids,
    masses: _Floats,
    levels: NDArray[np.uint8],
    indices: _Codes,
    leaf_points: _Ids | None,
    box_points: _Ids | None,
    threads: int,
) -> _Floats:
    """Mass of each set on each box, in every partition.

    A box gets of a leaf's mass what it has of its volume; or, where points are given, what it has
    of its points, spread evenly over a leaf as far as the points of all boxes allow.
    """

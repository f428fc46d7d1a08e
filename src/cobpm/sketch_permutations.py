"""Labels of rows that were counted in cells, permuted.

How many rows of a cell get the first label when all labels are handed out at random is
hypergeometric, in all cells together multivariate. So a permutation is one draw of counts, whatever
the number of rows, and a test of two sketches has the same exact level as one of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cobpm import _core
from cobpm.arrays import FloatArray
from cobpm.engines.ratio import depth_for
from cobpm.frames import Frame
from cobpm.progress import Progress
from cobpm.ratio_model import RatioModel
from cobpm.samples import Seen, bad
from cobpm.sketched import Sketched
from cobpm.threads import thread_count

LANES = 8  # permutations that the core takes together
MOST_ROWS = 10**9 - 1  # that NumPy draws from
MOST_DRAWS = 20_000_000  # of cells and permutations: ten seconds or so
FEWEST_CELLS = 1000
BLOCK_BYTES = 1 << 26  # of counts held at a time


def affordable_cells(permutations: int) -> int:
    """Cells that there may be when so many permutations are to be drawn."""
    return max(FEWEST_CELLS, MOST_DRAWS // permutations)


def sketch_log_ratios(
    samples: Sketched,
    frames: Sequence[Frame],
    permutations: int,
    rng: np.random.Generator,
    max_regions: int,
    report: Progress | None,
) -> FloatArray:
    """Log Φ/L in each frame, of two sets as they are and with labels permuted: (frames, 1 + B)."""
    if sum(samples.sizes) > MOST_ROWS:
        way_out = "With so many, compare() and its Bayes factor will do."
        rule = f"have at most {MOST_ROWS:,} rows together"
        raise bad("x", "test", rule, Seen(f"{sum(samples.sizes):,}"), way_out)
    threads = thread_count()
    recursions, same, found = [], [], []
    for frame in frames:
        cells = samples.encode(frame)
        model = RatioModel(cells.d, samples.sizes)
        recursions.append(
            _core.Ratio(
                cells.codes,
                cells.sets,
                2,
                depth_for(cells, max_regions // len(frames)),
                model.concentrations,
                model.stop,
                threads,
                None,
                cells.weights,
                cells.resolution,
            )
        )
        same.append(model.log_same())
    found.append(np.array([[recursion.up(threads)] for recursion in recursions]))
    counts, which = samples.pooled()
    step = LANES * max(1, BLOCK_BYTES // (4 * LANES * len(which)))
    for first in range(0, permutations, step):
        size = min(step, permutations - first)
        drawn = _drawn(counts, which, samples.sizes[0], size, rng)
        logs = [recursion.given(drawn, threads)[:size] for recursion in recursions]
        found.append(np.array(logs))
        if report is not None:
            report("permuting labels", (first + size) / permutations)
    return np.asarray(np.concatenate(found, axis=1) - np.array(same)[:, np.newaxis])


def _drawn(
    counts: NDArray[np.int64],
    which: NDArray[np.int64],
    first_size: int,
    permutations: int,
    rng: np.random.Generator,
) -> NDArray[np.uint32]:
    """How many rows of each cell get the first label: (blocks, rows of cells, lanes).

    A cell may have a row for each set. The first of them takes the count.
    """
    _, firsts = np.unique(which, return_index=True)
    blocks = -(-permutations // LANES)
    drawn = np.zeros((blocks, len(which), LANES), dtype=np.uint32)
    for block in range(blocks):
        labelled = rng.multivariate_hypergeometric(
            counts, first_size, size=LANES, method="marginals"
        )
        drawn[block, firsts] = labelled.T
    return drawn

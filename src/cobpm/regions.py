"""The table of regions: where two sets differ, in the user's units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm.arrays import FloatArray

if TYPE_CHECKING:
    import pandas as pd

    from cobpm.posterior import Posterior


def region_table(post: Posterior, level: float, pair: tuple[int, int] | None) -> pd.DataFrame:
    """The regions of the most probable partition drawn; see `Posterior.regions`."""
    import pandas as pd

    shown = post.partitions.one(int(np.argmax(post.partitions.log_weights(post.model))))
    levels, indices = shown.boxes()
    ends = {}
    for active, column in enumerate(post.domain.active):
        width = np.ldexp(1.0, -levels[:, active].astype(int))
        start = indices[:, active] * width
        low, high = post.domain.interval(active, start, start + width)
        ends[post.columns[column]] = (low, high, levels[:, active] > 0)

    # (draws, regions, sets): what every drawn partition puts on these regions.
    masses = post.partitions.box_masses(post.masses, levels, indices)
    table: dict[str, Any] = {"where": _sentences(ends, len(levels))}
    for name, (low, high, _) in ends.items():
        table[f"{name}_low"], table[f"{name}_high"] = low, high
    for k, name in enumerate(post.names):
        table[f"points_{name}"] = shown.counts[:, k].astype(np.int64)
        table[f"mass_{name}"] = masses[:, :, k].mean(axis=0)
    if pair is None:
        order = np.argsort(-masses[:, :, 0].mean(axis=0), kind="stable")
    else:
        p, q = (masses[:, :, k] for k in pair)
        log_ratio = np.log(p) - np.log(q)
        table["log_ratio"] = log_ratio.mean(axis=0)
        table["log_ratio_low"], table["log_ratio_high"] = np.quantile(
            log_ratio, [(1 - level) / 2, (1 + level) / 2], axis=0
        )
        table[f"p_{post.names[pair[0]]}_denser"] = (p > q).mean(axis=0)
        order = np.argsort(-np.abs((p - q).mean(axis=0)), kind="stable")
    return pd.DataFrame(table).iloc[order].reset_index(drop=True)


def _sentences(ends: dict[str, tuple[FloatArray, FloatArray, Any]], rows: int) -> list[str]:
    """Each region in words, naming the columns that were cut."""
    result = []
    for row in range(rows):
        parts = []
        for name, (low, high, cut) in ends.items():
            if not cut[row]:
                continue
            a, b = low[row], high[row]
            parts.append(f"{name} = {a:.6g}" if a == b else f"{a:.6g} ≤ {name} ≤ {b:.6g}")
        result.append(" and ".join(parts) if parts else "everywhere")
    return result

"""The picture of a monitor: a divergence over time, with intervals and the threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm import divergences

if TYPE_CHECKING:
    from cobpm.drift import Drift

MOST_LABELS = 30
FINE, BAD = "#3b6ea5", "#c0392b"


def draw(drift: Drift, ax: Any = None) -> Any:
    """Draw all steps of a monitor; see `Drift.plot`."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: pip install 'cobpm[plot]'") from error

    steps = drift.history or drift.steps
    if ax is None:
        width = min(14.0, max(5.0, 2.0 + 0.45 * len(steps)))
        _, ax = plt.subplots(figsize=(width, 3.6), layout="constrained")
    at = np.arange(len(steps))
    middle = np.array([one.estimate for one in steps])
    ax.plot(at, middle, color="0.75", lw=1, zorder=1)
    for above, color, label in ((False, FINE, ""), (True, BAD, "above the threshold")):
        own = [k for k, one in enumerate(steps) if drift.is_above(one) == above]
        if not own:
            continue
        low, high = (np.array([getattr(steps[k], end) for k in own]) for end in ("low", "high"))
        # Intervals need not hold the estimate if that is a mean far in the tail.
        ax.vlines(at[own], low, high, color=color, lw=2, zorder=2)
        ax.plot(at[own], middle[own], "o", color=color, ms=5, zorder=3, label=label or None)
    if drift.threshold is not None:
        ax.axhline(drift.threshold, color="0.3", lw=1, ls="--", label="threshold")
        ax.legend(frameon=False, fontsize=8, loc="upper left")
    every = -(-len(steps) // MOST_LABELS)
    names = [one.step if len(one.step) <= 24 else f"{one.step[:23]}…" for one in steps]
    turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(at[::every], names[::every], fontsize=8, **turned)
    ax.set_ylim(bottom=0.0)
    ax.margins(y=0.15)
    label = divergences.parse(drift.divergence, "monitor").label
    ax.set_ylabel(label[0].upper() + label[1:])
    ax.set_title(f"Distance from the reference, with {drift.level:.6g} intervals", fontsize=10)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax

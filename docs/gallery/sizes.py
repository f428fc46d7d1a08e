"""
How many rows do I need?
========================

Before collecting data: a difference of a certain size matters to you. With how many rows per
group would it be seen, and how well would its size be known?

Simulate. Make up two groups that differ by as much as would matter, compare samples of several
sizes, and look at what comes out. Here two measurements are shifted by a quarter of their spread,
which is a small difference: a guess of the group would be right in 55 of 100 cases.
"""

# %%
# The plan
# --------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import norm

import cobpm

shift = 0.25
truth = 2 * norm.cdf(shift / 2) - 1  # total variation of two shifted normals
sizes = [50, 100, 200, 500, 1000, 2000, 5000]
repeats = 8

rng = np.random.default_rng(2)
rows = []
for n in sizes:
    for _ in range(repeats):
        post = cobpm.compare(
            rng.normal(0, 1, n), rng.normal(shift, 1, n), rng=0, draws=1000
        )
        ends = post.interval("tv", 0.9)
        found = {"tv": post.estimate("tv"), "low": ends.low, "high": ends.high}
        rows.append({"n": n, **found, "same": post.same_probability()})
runs = pd.DataFrame(rows)

# %%
# The answer
# ----------
#
# Each line is the 90% interval of one simulated study, its dot the estimate. Orange ones begin at
# zero: that study could not tell whether there is a difference.

fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
place = np.arange(len(runs)) + np.arange(len(runs)) // repeats * 3
colours = np.where(runs["low"] > 0, "C0", "C1")
ax.vlines(place, runs["low"], runs["high"], colors=colours, linewidth=3, alpha=0.6)
ax.scatter(place, runs["tv"], c=colours, s=14, zorder=3)
ax.axhline(truth, color="0.3", linestyle=":", label=f"truth: {truth:.3f}")
ax.set_xticks(place.reshape(-1, repeats).mean(axis=1), [f"{n:,}" for n in sizes])
ax.set(xlabel="rows in each group", ylabel="total variation distance")
ax.legend()
plt.show()

# %%
# How often a study of each size would find the difference, by an interval above zero or by a
# probability of "the same" below 0.05, how often its interval would hold the truth, and how wide
# it would be:

runs["above zero"] = runs["low"] > 0
runs["same < 0.05"] = runs["same"] < 0.05
runs["holds truth"] = (runs["low"] <= truth) & (truth <= runs["high"])
runs["width"] = runs["high"] - runs["low"]
runs.groupby("n")[
    ["above zero", "same < 0.05", "holds truth", "width"]
].mean().round(2)

# %%
# What to watch out for
# ---------------------
#
# - **Eight studies per size** make a sketch. For a decision, run a hundred of them; it takes a
#   minute or two.
# - **"Not found" is not "not there".** Small studies of this difference mostly say that there is
#   none. What they rule out is in the upper end of the interval.
# - **The kind of difference matters.** A shift of everything takes many rows to see. The same total
#   variation in one corner, as in :doc:`the example on drift <drift>`, takes fewer.

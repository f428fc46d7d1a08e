"""
Which sensors behave alike?
===========================

Twenty-four sensors, each with a few hundred readings of two quantities. Which of them behave alike?
Means and spreads do not tell: they are the same for all. Here the observations are whole sample
sets, and the divergence between two of them is their distance.

The data is simulated: three kinds of sensors, which differ in how the two quantities go together.
"""

# %%
# The data
# --------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import SpectralClustering
from sklearn.manifold import MDS

import cobpm

rng = np.random.default_rng(5)


def readings(kind, n):
    if kind == "ring":
        angle = rng.uniform(0, 2 * np.pi, n)
        points = np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])
        return points + rng.normal(0, 0.2, (n, 2))
    slope = {"up": 0.7, "none": 0.0}[kind]
    return rng.multivariate_normal([0, 0], [[1, slope], [slope, 1]], n)


kinds = ["none", "up", "ring"] * 8
sensors = {
    f"{kind} {k // 3 + 1}": readings(kind, rng.integers(150, 400))
    for k, kind in enumerate(kinds)
}

# %%
fig, axes = plt.subplots(
    1, 3, figsize=(8, 2.9), sharex=True, sharey=True, layout="constrained"
)
for ax, name in zip(axes, ("none 1", "up 1", "ring 1"), strict=True):
    ax.scatter(*sensors[name].T, s=6, alpha=0.6, linewidths=0)
    ax.set(title=f"{name}, {len(sensors[name])} readings", aspect="equal")
plt.show()

# %%
# The answer
# ----------
#
# One call for all 276 pairs. The map puts similar sensors next to each other:

# sphinx_gallery_thumbnail_number = 2
pairs = cobpm.pairwise(sensors, "hellinger", rng=0)
pairs.plot()
plt.show()

# %%
# Clustering takes similarities, a map of the sensors takes distances:

groups = SpectralClustering(3, affinity="precomputed", random_state=0)
found = groups.fit_predict(pairs.affinity())
for group in range(3):
    print(
        group, [name for name, g in zip(sensors, found, strict=True) if g == group]
    )

# %%
scaling = MDS(metric="precomputed", n_init=1, init="classical_mds", random_state=0)
place = scaling.fit_transform(pairs.matrix)
fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
for kind, marker in (("none", "o"), ("up", "^"), ("ring", "s")):
    chosen = np.array(kinds) == kind
    ax.scatter(
        *place[chosen].T,
        c=found[chosen],
        vmin=0,
        vmax=2,
        marker=marker,
        s=60,
        label=kind,
    )
ax.set(title="Markers: the truth. Colours: what was found.", aspect="equal")
ax.legend()
plt.show()

# %%
# What to watch out for
# ---------------------
#
# - **Alike is not zero here.** All sensors share one partition. Cells that are needed for the rings
#   add some noise to the other pairs, so two sensors of one kind have a small divergence, not none.
#   For numbers of single pairs take ``partition="pair"``:

each = cobpm.pairwise(
    {name: sensors[name] for name in ("none 1", "none 2", "up 1", "ring 1")},
    "hellinger",
    partition="pair",
    rng=0,
)
each.to_frame().round(3)

# %%
# - **The number of clusters** was given. Spectral clustering finds as many as it is told to; look
#   at the map and the tree.
# - **Units and zeros.** A sensor that reports in other units is another distribution. That may be
#   just what you want to find.

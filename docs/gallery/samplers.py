"""
Do two samplers agree on a posterior?
=====================================

A Markov chain is run on a distribution with two modes, four times. R-hat is 1.00, the traces look
fine. Is the answer right? A second, slower sampler says something else. By how much do they differ,
and which part of the space did the first one miss?

The target is a mixture of two bent normals in two columns, so the truth is known: 60% of the mass
is on the left, 40% on the right.
"""

# %%
# The data
# --------
#
# Two samplers: random-walk Metropolis with small steps, all chains started from the same guess, and
# parallel tempering, which can cross from one mode to the other.

import matplotlib.pyplot as plt
import numpy as np
from arviz_stats.base.array import array_stats

import cobpm


def log_density(z):
    bent = z[..., 1] - 0.1 * z[..., 0] ** 2
    left = np.log(0.6) - 0.5 * ((z[..., 0] + 6) ** 2 + bent**2)
    right = np.log(0.4) - 0.5 * ((z[..., 0] - 6) ** 2 + bent**2)
    return np.logaddexp(left, right)


def walk(start, steps, temperatures, rng):
    """Metropolis at each temperature, and exchanges between neighbours."""
    beta = 1.0 / np.array(temperatures)[:, None]
    chains = start.shape[0]
    z = np.repeat(start[None], len(temperatures), axis=0)
    now, kept = log_density(z), np.empty((steps, chains, 2))
    for step in range(steps):
        new = z + rng.normal(size=z.shape) * (1.2 / np.sqrt(beta))[..., None]
        then = log_density(new)
        moved = np.log(rng.random(now.shape)) < beta * (then - now)
        z, now = np.where(moved[..., None], new, z), np.where(moved, then, now)
        for k in range(step % 2, len(temperatures) - 1, 2):
            swap = np.log(rng.random(chains)) < (beta[k] - beta[k + 1]) * (
                now[k + 1] - now[k]
            )
            for state in (z, now):
                state[k : k + 2, swap] = state[k : k + 2, swap][::-1]
        kept[step] = z[0]  # the coldest
    return kept[steps // 5 :]


rng = np.random.default_rng(1)
start = np.tile([-6.0, 3.6], (4, 1)) + rng.normal(0, 0.5, (4, 2))
stuck = walk(start, 6000, [1.0], rng)
tempered = walk(start, 6000, [1.0, 2.0, 4.0, 8.0, 16.0], rng)

for name, draws in (("random walk", stuck), ("tempering", tempered)):
    rhat = [float(array_stats.rhat(draws[:, :, j].T)) for j in range(2)]
    ess = [float(array_stats.ess(draws[:, :, j].T)) for j in range(2)]
    print(f"{name}: R-hat {max(rhat):.2f}, {min(ess):.0f} effective draws")

# %%
# All looks well. But the usual checks only see the places where the chains have been.
#
# The answer
# ----------
#
# Draws of a chain depend on each other, and ``cobpm`` takes rows for independent. So keep every
# tenth (there is more on this below).

x, y = stuck[::10].reshape(-1, 2), tempered[::10].reshape(-1, 2)
post = cobpm.fit({"random walk": x, "tempering": y}, rng=0)
print(f"probability that they are alike: {post.same_probability():.2g}")
post.summary(["tv", "hellinger"]).round(3)

# %%
# Total variation is the share of the posterior that the random walk misses; the truth is 0.4. The
# picture shows the place:

post.plot.map()
plt.show()

# %%
# And tempering, is it right? Here we have the target itself to compare with:

left = rng.random(20_000) < 0.6
target = rng.normal(size=(20_000, 2))
target[:, 0] += np.where(left, -6, 6)
target[:, 1] += 0.1 * target[:, 0] ** 2
check = cobpm.compare(y, target, rng=0)
print(f"probability that they are alike: {check.same_probability():.2g}")
check.summary(["tv", "hellinger"]).round(3)

# %%
# What to watch out for
# ---------------------
#
# **Thin the chains.** With all draws, neighbours in a chain look like evidence for something. The
# same tempering run, all 19,200 draws of it, against the same target:

everything = cobpm.compare(tempered.reshape(-1, 2), target, rng=0)
print(f"probability that they are alike: {everything.same_probability():.2g}")
everything.summary(["tv"]).round(3)

# %%
# That is a false alarm. Keep about as many draws as there are effective ones.
#
# **Agreement is no proof.** Two samplers that miss the same mode agree very well.

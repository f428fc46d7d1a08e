"""
Two treatment groups whose means agree
======================================

Patients were assigned to a treatment or a placebo by lot. After three months the change of their
blood pressure was measured. Does the treatment do anything, and for whom?

The data is simulated. The treatment lowers the pressure of patients younger than 55 by 10 on
average and raises that of the others by 5.5, so that all in all nothing seems to happen.
"""

# %%
# The data
# --------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import ttest_ind

import cobpm

rng = np.random.default_rng(3)


def patients(n, effect):
    age = rng.normal(58, 9, n).round()
    change = rng.normal(0, 8, n) + effect * np.where(age < 55, -10.0, 5.5)
    return pd.DataFrame({"age": age, "change": change.round(1)})


placebo, treatment = patients(400, effect=0), patients(400, effect=1)

# %%
# The means say that nothing happened:

for name, group in (("placebo", placebo), ("treatment", treatment)):
    print(f"{name}: mean change {group['change'].mean():+.2f}")
print(f"t test: p = {ttest_ind(placebo['change'], treatment['change']).pvalue:.2f}")

# %%
# The answer
# ----------
#
# Looking at age and change together, there is no doubt:

post = cobpm.fit({"placebo": placebo, "treatment": treatment}, rng=0)
print(f"cobpm.test: p = {cobpm.test(placebo, treatment, rng=0).pvalue:.3f}")
print(f"probability that the groups are alike: {post.same_probability():.2g}")
post.summary(["tv", "hellinger", "kl"]).round(3)

# %%
# (``fit`` is ``compare`` with names for the samples.)
#
# The regions tell the story: among the younger patients a large fall has become common, among the
# older ones a rise.

shown = ["where", "mass_placebo", "mass_treatment", "log_ratio", "p_placebo_denser"]
post.regions()[shown].head(5).round(3)

# %%
# The same as a picture, the ratio of the densities at every age and change. The dotted line is
# where the treatment changes sides; the model was not told.

ax = post.plot.map(["age", "change"], leaves=False)
ax.axvline(55, color="0.2", linestyle=":")
plt.show()

# %%
# What to watch out for
# ---------------------
#
# - **Cause and difference.** The groups were made by lot, so the difference is the treatment's
#   doing. Between groups that formed themselves it could be anything.
# - **Borders are not thresholds.** Regions end at dyadic cuts of the mapped columns. The true
#   border is at an age of 55; the cuts are where halving happens to put them. Averaged over
#   thousands of partitions, the picture is better than any one of them.
# - **Regions are found after looking.** They say where the difference is once you know that there
#   is one. To decide whether there is, use the test.

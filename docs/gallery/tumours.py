"""
Which measurement tells benign from malignant?
==============================================

Real data: 569 breast tumours, 357 benign and 212 malignant, with thirty measurements of the cell
nuclei of each, from digital images. (The Wisconsin diagnostic data of W. H. Wolberg, W. N. Street
and O. L. Mangasarian, 1995, UCI Machine Learning Repository, CC BY 4.0. It comes with
scikit-learn.) Which measurement separates the two kinds best? What do two of them add to one?
"""

# %%
# The data
# --------

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_breast_cancer

import cobpm

tumours = load_breast_cancer(as_frame=True)
is_benign = tumours.target == 1
benign, malignant = tumours.data[is_benign], tumours.data[~is_benign]

# %%
# One at a time
# -------------
#
# Total variation has a plain meaning here: a guess of the kind by this measurement alone, for a
# tumour that is as likely to be the one as the other, can be right with probability (1 + tv) / 2
# and no more.

rows = {}
for name in tumours.data.columns:
    post = cobpm.compare(benign[name], malignant[name], rng=0, draws=1000)
    rows[name] = {"tv": post.estimate("tv"), **post.interval("tv")._asdict()}
ranking = pd.DataFrame(rows).T.sort_values("tv")

fig, ax = plt.subplots(figsize=(7, 7), layout="constrained")
ax.hlines(ranking.index, ranking["low"], ranking["high"], color="0.7", linewidth=4)
ax.plot(ranking["tv"], ranking.index, "o", color="C0")
ax.set(xlabel="total variation distance, with 90% intervals", xlim=(-0.02, 1))
ax.margins(y=0.02)
plt.show()

# %%
# The intervals of the first few overlap: which of them is best, these tumours cannot tell. At the
# other end there are measurements that say nothing, and for them the interval reaches zero.

ranking[ranking["low"] < 0.01].round(3)

# %%
# Two together
# ------------
#
# Worst perimeter and worst smoothness, from the top and from the middle of the list:

pair = ["worst perimeter", "worst smoothness"]
both = cobpm.fit({"benign": benign[pair], "malignant": malignant[pair]}, rng=0)
both.summary(["tv", "hellinger"]).round(3)

# %%

pd.set_option("display.max_colwidth", None)
shown = ["where", "points_benign", "points_malignant", "p_benign_denser"]
both.regions()[shown].head(4).round(3)

# %%

both.plot.map(pair)
plt.show()

# %%
# What to watch out for
# ---------------------
#
# - **The best of thirty is flattered.** Whoever comes out on top was good and lucky. Its interval
#   does not know that it was picked.
# - **Columns overlap.** Radius, perimeter and area measure nearly the same. Total variation of two
#   columns is at least that of the better one, and rarely the sum.
# - **KL would be a poor choice here.** There are regions without a single malignant tumour. How far
#   apart the kinds are in the sense of KL hangs on what is never seen there.

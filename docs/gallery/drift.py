"""
Has this month drifted from the last?
=====================================

A shop looks at its orders: the amount, the number of items, the hour of the day. A forecast was
trained on last month's. Are this month's orders still the same kind of orders? If not: how far off
are they, and which ones?

The data is simulated. This month, 6% of the orders are of a new kind: single cheap items, bought
late in the evening.
"""

# %%
# The data
# --------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import cobpm

rng = np.random.default_rng(7)


def usual_orders(n):
    items = 1 + rng.poisson(1.5, n)
    amount = (items * rng.lognormal(2.7, 0.5, n)).round(2)
    hour = np.clip(rng.normal(15, 3.5, n), 0, 24)
    return pd.DataFrame({"amount": amount, "items": items, "hour": hour})


def new_orders(n):
    amount = rng.normal(4, 1, n).clip(0.5).round(2)
    return pd.DataFrame(
        {"amount": amount, "items": 1, "hour": rng.uniform(21, 24, n)}
    )


october = usual_orders(3000)
november = pd.concat([usual_orders(2820), new_orders(180)], ignore_index=True)

# %%
# Column by column there is not much to see:

pd.concat(
    {"October": october.describe(), "November": november.describe()}, axis=1
).loc[["mean", "std", "50%"]].round(2)

# %%
# The answer
# ----------
#
# First, is there a difference at all? Labels handed out at random hardly ever look like these:

cobpm.test(october, november, rng=0)

# %%
# By how much? Total variation says which share of the orders would have to change for the two
# months to be alike; Hellinger and Jensen-Shannon are other yardsticks. For orders of a new kind
# that hardly overlap with the usual ones, the truth is known:

post = cobpm.fit({"October": october, "November": november}, rng=0)
share = 0.06
truth = {
    "tv": share,
    "hellinger": np.sqrt(1 - np.sqrt(1 - share)),
    "js": (
        -np.log(1 - share / 2)
        + (1 - share) * np.log((1 - share) / (1 - share / 2))
        + share * np.log(2)
    )
    / 2,
}
table = post.summary(list(truth)).drop(columns="note")
table.assign(truth=truth).round(3)

# %%
# Total variation comes out on the high side here: it adds up absolute values, and with them the
# noise of all the regions where nothing happened. The other two are less easily impressed.

# %%
# (``fit`` is ``compare`` with names for the samples.)
#
# And where? The first row is the region that contributes most. It was found, not asked for, and it
# is in the units of the columns:

shown = [
    "where",
    "points_October",
    "points_November",
    "mass_October",
    "mass_November",
]
post.regions()[shown].head(3).round(3)

# %%
# All of it in one picture. The corner of cheap and late orders is the one place in strong colours:

post.plot()
plt.show()

# %%
# When nothing has changed
# ------------------------
#
# An alarm that always rings is of no use. Two halves of October have the same distribution, and the
# divergence between them is zero, not "small":

halves = cobpm.compare(october[::2], october[1::2], rng=0)
print(halves.summary(["tv", "hellinger", "js"]).round(3))
print("probability that the halves are alike:", round(halves.same_probability(), 3))

# %%
# What to watch out for
# ---------------------
#
# - **Rows have to be independent.** Ten orders of one customer are not ten pieces of evidence. Take
#   one of them, or compare customers.
# - **Seasons are differences too.** November is not October; compare with last November if that is
#   what you mean.
# - **Testing every day** means false alarms now and then: one in twenty at a level of 0.05. Look at
#   the size of the divergence, not only at the p-value.

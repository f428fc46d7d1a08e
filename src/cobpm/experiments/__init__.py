"""Every table and figure of the paper, one module each; `cobpm reproduce` runs them.

A module of an experiment has

    NAME    its name on the command line, which its files bear too
    TITLE   the heading of its page
    run     from (Settings, Progress) to a Result, all of `cobpm.experiments.framework`
    check   if it needs data: from Settings to an error, before any experiment is run

and is listed below. It is loaded when it is run, and imports optional libraries inside functions.
"""

from __future__ import annotations

# In the order of the paper.
MODULES = {
    "illustrations": "cobpm.experiments.illustrations",
    "table1": "cobpm.experiments.table1",
    "sanity": "cobpm.experiments.sanity",
    "one-dim": "cobpm.experiments.one_dim",
    "three-dim": "cobpm.experiments.three_dim",
    "table2": "cobpm.experiments.table2",
    "comparison": "cobpm.experiments.comparison",
    "images": "cobpm.experiments.images",
}

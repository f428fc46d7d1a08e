"""The three-dimensional simulation: two mixtures of products of beta densities."""

from __future__ import annotations

from cobpm.experiments.framework import Result, Settings
from cobpm.experiments.laws import BETA_MIXTURES, FOUR
from cobpm.experiments.simulation import Study
from cobpm.progress import Progress

NAME = "three-dim"
TITLE = "Three-dimensional simulation"
STUDY = Study(
    BETA_MIXTURES,
    dict(zip(FOUR, (0.2301, 0.2129, 0.2133, 0.6769), strict=True)),
    "⅖ Beta(1,2) Beta(2,3) Beta(3,4) + ⅗ Beta(4,3) Beta(3,2) Beta(2,1) against "
    "⅖ Beta(1,3) Beta(3,5) Beta(5,7) + ⅗ Beta(7,5) Beta(5,3) Beta(3,1)",
)


def run(settings: Settings, progress: Progress) -> Result:
    """Run it."""
    return STUDY.run(settings, progress)

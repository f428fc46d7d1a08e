"""The one-dimensional simulation: Beta(6, 5) against Beta(5, 6)."""

from __future__ import annotations

from cobpm.experiments.framework import Result, Settings
from cobpm.experiments.laws import FOUR, ONE_DIM
from cobpm.experiments.simulation import Study
from cobpm.progress import Progress

NAME = "one-dim"
TITLE = "One-dimensional simulation"
STUDY = Study(
    ONE_DIM,
    dict(zip(FOUR, (0.2461, 0.2207, 0.2000, 0.4056), strict=True)),
    "Beta(6, 5) against Beta(5, 6)",
)


def run(settings: Settings, progress: Progress) -> Result:
    """Run it."""
    return STUDY.run(settings, progress)

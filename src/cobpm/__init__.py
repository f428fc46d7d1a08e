"""cobpm: are two samples different, by how much, how sure are we, and where?

Everything public is listed here and loaded on first use, so that importing the package stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.4.0"

_HOME = {
    "CoBPM": "cobpm.estimator",
    "SampleSetDivergence": "cobpm.estimator",
    "compare": "cobpm.api",
    "fit": "cobpm.api",
    "pairwise": "cobpm.api",
    "Pairwise": "cobpm.pairs",
    "PairwiseInterrupted": "cobpm.pairs",
    "Grid": "cobpm.grid",
    "GridBuilder": "cobpm.grid_builder",
    "Drift": "cobpm.drift",
    "monitor": "cobpm.drift",
    "load": "cobpm.posterior",
    "Posterior": "cobpm.posterior",
    "InputError": "cobpm.samples",
    "Sketch": "cobpm.sketch",
    "SketchBuilder": "cobpm.sketch",
    "test": "cobpm.two_sample",
    "TestResult": "cobpm.two_sample",
}

__all__ = [
    "CoBPM",
    "Drift",
    "Grid",
    "GridBuilder",
    "InputError",
    "Pairwise",
    "PairwiseInterrupted",
    "Posterior",
    "SampleSetDivergence",
    "Sketch",
    "SketchBuilder",
    "TestResult",
    "__version__",
    "compare",
    "fit",
    "load",
    "monitor",
    "pairwise",
    "test",
]

if TYPE_CHECKING:
    from cobpm.api import compare, fit, pairwise
    from cobpm.drift import Drift, monitor
    from cobpm.estimator import CoBPM, SampleSetDivergence
    from cobpm.grid import Grid
    from cobpm.grid_builder import GridBuilder
    from cobpm.pairs import Pairwise, PairwiseInterrupted
    from cobpm.posterior import Posterior, load
    from cobpm.samples import InputError
    from cobpm.sketch import Sketch, SketchBuilder
    from cobpm.two_sample import TestResult, test


def __getattr__(name: str) -> Any:
    """Load a public name from its module the first time it is asked for."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'cobpm' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)

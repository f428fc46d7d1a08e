"""Pictures, on matplotlib, which is imported when the first one is drawn.

Every function takes the axes to draw on and returns them. None changes matplotlib's settings:
colours go with the background of the axes, light or dark. What the pictures show is worked out in
`cobpm.views`.
"""

from cobpm.plots.accessor import Plots
from cobpm.plots.heat_map import heat_map

__all__ = ["Plots", "heat_map"]

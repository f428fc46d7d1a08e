"""What all pictures share: colours, names that are safe to print, and axes in the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap

Colour = tuple[float, float, float]

# Okabe and Ito's blues and oranges, which nobody confuses; lighter ones for dark backgrounds.
ON_LIGHT = ("#0072b2", "#d55e00")
ON_DARK = ("#56b4e9", "#e69f00")
NEITHER = "#009e73"  # their green, for what belongs to neither set
MOST_LETTERS = 28  # of a name, beyond which its middle is left out
DAY = 86400.0
FIRST_DATE, LAST_DATE = -60_000_000_000.0, 250_000_000_000.0  # seconds: the years 69 to 9892


def pyplot(owner: str = "plot") -> Any:
    """Matplotlib's pyplot, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{owner}() needs matplotlib: pip install 'cobpm[plot]'") from error
    return plt


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The axes given, or those of a new figure of that size in inches."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
    assert ax is not None
    return ax


def printable(name: str, most: int = MOST_LETTERS) -> str:
    """A name as it is, for matplotlib, which would read $…$ as mathematics; cut if it is long."""
    name = " ".join(name.split()) or repr(name)
    if len(name) > most:
        name = f"{name[: most - most // 2 - 1]}…{name[-(most // 2) :]}"
    return name.replace("$", r"\$")


def for_legend(name: str) -> str:
    """A name for a legend, which leaves out those that begin with an underscore."""
    name = printable(name)
    return f" {name}" if name.startswith("_") else name


# --- colours -----------------------------------------------------------------------------------


def paper(ax: Axes) -> Colour:
    """The colour behind the picture."""
    from matplotlib.colors import to_rgba

    for colour in (ax.get_facecolor(), ax.figure.get_facecolor()):
        *rgb, alpha = to_rgba(colour)
        if alpha > 0:
            return (rgb[0], rgb[1], rgb[2])
    return (1.0, 1.0, 1.0)


def is_dark(ax: Axes) -> bool:
    """Whether the background is nearer to black than to white."""
    return bool(np.dot(paper(ax), [0.299, 0.587, 0.114]) < 0.5)


def set_colours(ax: Axes) -> tuple[str, str]:
    """Colours of the first and the second set."""
    return ON_DARK if is_dark(ax) else ON_LIGHT


def ink(ax: Axes, strength: float = 1.0) -> Colour:
    """The colour of text, or one on the way there from the background."""
    return mixed(ax, ax.xaxis.label.get_color(), strength)


def mixed(ax: Axes, colour: Any, strength: float) -> Colour:
    """A colour mixed with the background: opaque, so that overlaps do not add up."""
    from matplotlib.colors import to_rgb

    r, g, b = strength * np.array(to_rgb(colour)) + (1 - strength) * np.array(paper(ax))
    return (float(r), float(g), float(b))


def ratio_colours(ax: Axes) -> Colormap:
    """From the second set's colour over a neutral one to the first set's."""
    from matplotlib.colors import LinearSegmentedColormap

    first, second = set_colours(ax)
    stops = [
        mixed(ax, second, 0.95),
        mixed(ax, second, 0.45),
        ink(ax, 0.06),
        mixed(ax, first, 0.45),
        mixed(ax, first, 0.95),
    ]
    return LinearSegmentedColormap.from_list("cobpm ratio", stops)


# --- axes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ruler:
    """How the values of a column go onto an axis.

    Attributes:
        name: The column, ready to print.
        dated: Whether values are dates.
        scale: What they are divided by: matplotlib cannot draw numbers near the largest floats.
    """

    name: str
    dated: bool = False
    scale: float = 1.0

    @classmethod
    def of(cls, name: str, edges: FloatArray, dated: bool) -> Ruler:
        """The ruler for a column with values between the first and the last edge."""
        if dated and edges[0] > FIRST_DATE and edges[-1] < LAST_DATE:
            return cls(printable(name), True)
        largest, width = np.abs(edges).max(), edges[-1] / 2 - edges[0] / 2
        if largest > 1e100 or width < 1e-100:
            scale = 10.0 ** np.floor(np.log10(max(largest, 1e-300)))
            return cls(printable(name), scale=float(scale))
        return cls(printable(name))

    def put(self, values: FloatArray) -> FloatArray:
        """Where values lie on the axis."""
        if not self.dated:
            return values / self.scale
        from matplotlib import dates as untyped

        dates: Any = untyped
        # Milliseconds will do, and reach far enough.
        milliseconds = np.round(np.clip(values, FIRST_DATE, LAST_DATE) * 1e3).astype(np.int64)
        return np.asarray(dates.date2num(milliseconds.astype("datetime64[ms]")))

    def mark(self, axis: Axis, *, label: bool = True, ticks: int = 6) -> None:
        """Ticks and label of the axis."""
        from matplotlib import dates as untyped
        from matplotlib.ticker import MaxNLocator

        dates: Any = untyped
        if self.dated:
            locator = dates.AutoDateLocator(minticks=2, maxticks=ticks)
            axis.set_major_locator(locator)
            axis.set_major_formatter(dates.ConciseDateFormatter(locator))
        else:
            axis.set_major_locator(MaxNLocator(nbins=ticks, steps=[1, 2, 2.5, 5, 10]))
        if label:
            axis.set_label_text(self.name + (f" (× {self.scale:g})" if self.scale != 1 else ""))


def ratio_ticks(largest: float) -> tuple[list[float], list[str]]:
    """Ticks for log ratios up to some size: where they are, and ratios such as 4 : 1."""
    scales = {
        0.06: (1.02, 1.05),
        0.25: (1.05, 1.1, 1.2),
        0.8: (1.2, 1.5, 2),
        1.3: (1.5, 2, 3),
        2.5: (2, 4, 8),
        3.7: (2, 5, 10, 30),
        7.0: (10, 100, 1000),
    }
    steps = next((found for most, found in scales.items() if largest <= most), None)
    if steps is None:
        jump = int(np.ceil(largest / np.log(10) / 3))
        steps = tuple(10.0 ** (jump * k) for k in (1, 2, 3))
    steps = tuple(step for step in steps if np.log(step) <= largest * 1.001)
    at = [-np.log(step) for step in reversed(steps)] + [0.0] + [np.log(step) for step in steps]
    said = [_number(step) for step in steps]
    labels = [f"1 : {s}" for s in reversed(said)] + ["1 : 1"] + [f"{s} : 1" for s in said]
    return [float(a) for a in at], labels


def _number(step: float) -> str:
    return f"{step:g}" if step < 1e4 else f"1e{round(np.log10(step))}"


def bare(ax: Axes, *sides: str) -> None:
    """Leave out some sides of the frame."""
    for side in sides or ("top", "right"):
        ax.spines[side].set_visible(False)

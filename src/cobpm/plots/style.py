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


def shortened(text: str, most: int) -> str:
    """A text without its middle if it is long."""
    if len(text) <= most:
        return text
    return f"{text[: most - most // 2 - 1]}…{text[-(most // 2) :]}"


def unread(text: str) -> str:
    """A text that matplotlib prints as it is, where it would read $…$ as mathematics."""
    return text.replace("$", r"\$")


def printable(name: str, most: int = MOST_LETTERS) -> str:
    """A name in one line, not too long, and not read as mathematics."""
    return unread(shortened(" ".join(name.split()) or repr(name), most))


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


def stronger(ax: Axes, colour: str) -> Colour:
    """A colour farther away from the background, for points on an area of that colour."""
    from matplotlib.colors import to_rgb

    r, g, b = 0.6 * np.array(to_rgb(colour)) + (0.4 if is_dark(ax) else 0.0)
    return (float(r), float(g), float(b))


def ratio_colours(ax: Axes) -> Colormap:
    """From the second set's colour over a neutral one to the first set's."""
    from matplotlib.colors import LinearSegmentedColormap

    first, second = set_colours(ax)
    stops = [
        mixed(ax, second, 0.85),
        mixed(ax, second, 0.4),
        ink(ax, 0.14 if is_dark(ax) else 0.06),
        mixed(ax, first, 0.4),
        mixed(ax, first, 0.85),
    ]
    return LinearSegmentedColormap.from_list("cobpm ratio", stops)


# --- axes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ruler:
    """How the values of a column go onto an axis.

    Attributes:
        name: The column, ready to print.
        dated: Whether values are dates.
        whole: Whether values are whole numbers.
        offset: What is subtracted from them: matplotlib cannot tell them apart far from zero.
        scale: What they are divided by then: it cannot draw numbers near the largest floats.
    """

    name: str
    dated: bool = False
    whole: bool = False
    offset: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, name: str, edges: FloatArray, dated: bool, step: float | None) -> Ruler:
        """The ruler for a column with values between the first and the last edge."""
        name = printable(name)
        if dated and edges[0] > FIRST_DATE and edges[-1] < LAST_DATE:
            return cls(name, dated=True)
        whole = step is not None and step == round(step)
        largest, width = float(np.abs(edges).max()), float(edges[-1] / 2 - edges[0] / 2)
        if largest > 1e100 or width < 1e-100:
            scale = 10.0 ** np.floor(np.log10(max(largest, 1e-300)))
            return cls(f"{name} (× {scale:g})", scale=float(scale))
        if width < 1e-7 * largest:
            offset = float(edges[len(edges) // 2])
            sign = "−" if offset > 0 else "+"
            return cls(f"{name} {sign} {abs(offset):.17g}", whole=whole, offset=offset)
        return cls(name, whole=whole)

    def put(self, values: FloatArray) -> FloatArray:
        """Where values lie on the axis."""
        if not self.dated:
            return (values - self.offset) / self.scale
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
            steps = [1, 2, 5, 10] if self.whole else [1, 2, 2.5, 5, 10]
            axis.set_major_locator(MaxNLocator(nbins=ticks, steps=steps, integer=self.whole))
        if label:
            axis.set_label_text(self.name)


def ratio_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Ticks for log ratios between two ends: where they are, and ratios such as 4 : 1."""
    scales = {
        0.06: (1.02, 1.05),
        0.25: (1.05, 1.1, 1.2),
        0.8: (1.2, 1.5, 2),
        1.3: (1.5, 2, 3),
        2.5: (2, 4, 8),
        3.7: (2, 5, 10, 30),
        5.0: (3, 10, 30, 100),
        7.0: (10, 100, 1000),
    }
    largest = max(-low, high)
    steps = next(found for most, found in scales.items() if largest <= most)
    said = [1 / step for step in reversed(steps)] + [1.0, *steps]
    at = {float(np.log(ratio)): ratio for ratio in said if low <= np.log(ratio) <= high}
    labels = [f"{r:g} : 1" if r >= 1 else f"1 : {1 / r:g}" for r in at.values()]
    return list(at), labels


def bare(ax: Axes, *sides: str) -> None:
    """Leave out some sides of the frame."""
    for side in sides or ("top", "right"):
        ax.spines[side].set_visible(False)

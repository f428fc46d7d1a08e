"""Draw the picture of docs/how-it-works.md: `python docs/images/how_it_works.py`."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from scipy.stats import beta

import cobpm

BLUE, ORANGE, GREY = "#2f7dc1", "#e8893a", "#6b7683"
P, Q = beta(6, 5), beta(5, 6)
LINES = 12  # partitions to show
SAVED = Path(__file__).with_suffix(".svg")

plt.rcParams.update(
    {
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "svg.hashsalt": "cobpm",
        "font.size": 9.5,
    }
)


def cuts(post: cobpm.Posterior, draw: int) -> list[tuple[float, float]]:
    """The cells of one partition of [0, 1], from left to right."""
    one = post.partitions.between(draw, draw + 1)
    cells, waiting = [], [(0.0, 1.0)]
    for split in one.splits:  # a cell, then all of its lower half, then its upper half
        low, high = waiting.pop()
        if split < 0:
            cells.append((low, high))
        else:
            waiting += [((low + high) / 2, high), (low, (low + high) / 2)]
    return cells


def draw_samples(ax, x, y) -> None:
    bins = np.linspace(0, 1, 33)
    ax.hist(x, bins, color=BLUE, alpha=0.65, label="x")
    ax.hist(y, bins, color=ORANGE, alpha=0.65, label="y")
    ax.set(title="1  Two samples", ylabel="points", xlim=(0, 1))
    ax.legend(frameon=False)


def draw_partitions(ax, post) -> None:
    ratios = np.log(post.masses[:, 0] / post.masses[:, 1])
    colours = LinearSegmentedColormap.from_list("samples", [BLUE, "#f4f4f4", ORANGE])
    for line, draw in enumerate(np.linspace(0, len(post.leaves) - 1, LINES).astype(int)):
        first = post.partitions.leaf_starts[draw]
        for k, (low, high) in enumerate(cuts(post, draw)):
            shade = colours(0.5 - ratios[first + k] / 4)
            ax.broken_barh([(low, high - low)], (line, 0.8), facecolor=shade, edgecolor="white")
    ax.set(title=f"2  {LINES} of 3,000 ways to cut, by their probability", xlim=(0, 1), yticks=[])
    ax.set_xlabel("blue: x is denser in this cell, orange: y is")
    ax.spines["left"].set_visible(False)


def draw_ratio(ax, post) -> None:
    points = np.linspace(0.005, 0.995, 400)
    band = post.log_ratio(points[:, np.newaxis], level=0.9)
    ax.fill_between(points, band.low, band.high, color=GREY, alpha=0.25, linewidth=0)
    ax.plot(points, band.estimate, color=GREY, label="average, with 90% band")
    ax.plot(points, P.logpdf(points) - Q.logpdf(points), "k:", label="truth")
    ax.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    ax.set(title="3  The average over cuts: where the samples differ", xlim=(0, 1), ylim=(-3, 3))
    ax.set_ylabel("log(density of x / of y)")
    ax.legend(frameon=False, loc="upper left")


def draw_divergence(ax, post) -> None:
    fine = (np.arange(100_000) + 0.5) / 100_000
    truth = np.abs(P.pdf(fine) - Q.pdf(fine)).mean() / 2
    low, high = post.interval("tv")
    ax.hist(post.draws("tv"), 50, color=GREY, alpha=0.6)
    ax.axvline(truth, color="k", linestyle=":", label="truth")
    ax.hlines(5, low, high, color="k", linewidth=5, label="90% interval")
    ax.set(title="4  The divergence of each cut: how much, how sure", yticks=[], ylabel="draws")
    ax.set_xlabel("total variation distance")
    ax.legend(frameon=False)


def main() -> None:
    rng = np.random.default_rng(20141006)
    x, y = P.rvs(1000, random_state=rng), Q.rvs(1000, random_state=rng)
    post = cobpm.compare(x, y, frames=["range"], bounds=(0, 1), rng=1)  # cuts at ½, ¼, ⅜ …
    fig, axes = plt.subplots(2, 2, figsize=(10, 6.4), layout="constrained")
    draw_samples(axes[0, 0], x, y)
    draw_partitions(axes[0, 1], post)
    draw_ratio(axes[1, 0], post)
    draw_divergence(axes[1, 1], post)
    fig.get_layout_engine().set(wspace=0.06, hspace=0.06)
    fig.savefig(SAVED, metadata={"Date": None})


if __name__ == "__main__":
    main()

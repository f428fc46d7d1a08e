"""Draw the pictures of plots.md: `python docs/make_pictures.py` writes them to docs/pictures/."""

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

import cobpm

HERE = Path(__file__).parent / "pictures"


def patients(seed: int, count: int, age: float, visits: float, days: int) -> pd.DataFrame:
    """A made-up table with a row per patient."""
    rng = np.random.default_rng(seed)
    admitted = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, days, count), "D")
    return pd.DataFrame(
        {
            "age": rng.normal(age, 10, count),
            "visits": rng.poisson(visits, count),
            "cost": np.where(rng.random(count) < 0.4, 0.0, rng.lognormal(3, 1, count)),
            "admitted": admitted,
        }
    )


def main() -> None:
    """Draw them all."""
    matplotlib.use("agg")
    HERE.mkdir(exist_ok=True)
    last, this = patients(0, 1500, 40, 2.0, 300), patients(1, 1800, 44, 2.6, 330)
    post = cobpm.fit({"last year": last, "this year": this}, rng=0)
    pictures = {
        "overview": post.plot()["where"],
        "map": post.plot.map(["age", "visits"]),
        "ratio": post.plot.ratio("age"),
        "columns": post.plot.columns(["age", "visits"])[0],
        "regions": post.plot.regions(most=6),
    }
    for name, ax in pictures.items():
        ax.figure.savefig(HERE / f"{name}.png", dpi=80)


if __name__ == "__main__":
    main()

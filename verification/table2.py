"""Table 2 of the paper, "bias and variance tradeoff": Rényi divergence of order 2 by pseudo-count.

Two normal distributions in four columns, means 1/3 and 1/2, standard deviation 1/5, cut off at the
unit cube, 500 points each. The paper has one data set; here are several, so that it can be seen how
much comes from the data.
"""

from __future__ import annotations

import numpy as np
from scipy import integrate, stats

import cobpm
from cobpm.arrays import FloatArray
from verification.report import parser, publish, table

DELTAS = (0.5, 0.6, 0.7, 0.8)
PAPER_MEDIANS = (2.3057, 1.7771, 1.5960, 1.5267)
PAPER_STDS = (1.2690, 0.6643, 0.2223, 0.2494)
MEANS, STD, COLUMNS, SIZE = (1 / 3, 1 / 2), 1 / 5, 4, 500


def truncated_normals(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Both sample sets. The columns are independent, so each is cut off by itself."""
    x, y = (
        stats.truncnorm.rvs(
            -mean / STD, (1 - mean) / STD, mean, STD, size=(SIZE, COLUMNS), random_state=rng
        )
        for mean in MEANS
    )
    return x, y


def true_value() -> float:
    """Rényi-2 between the two, by quadrature: it adds up over independent columns."""
    p, q = (stats.truncnorm(-mean / STD, (1 - mean) / STD, mean, STD).pdf for mean in MEANS)
    integral, _ = integrate.quad(lambda t: p(t) ** 2 / q(t), 0.0, 1.0)
    return COLUMNS * float(np.log(integral))


def main() -> None:
    options = parser(__doc__, "table2")
    options.add_argument("--data-sets", type=int, default=12)
    given = options.parse_args()
    medians, stds = (np.empty((given.data_sets, len(DELTAS))) for _ in range(2))
    for i in range(given.data_sets):
        x, y = truncated_normals(np.random.default_rng([given.seed, i]))
        for j, delta in enumerate(DELTAS):
            draws = cobpm.compare(x, y, bounds=(0, 1), delta=delta, rng=i, model="paper").draws(
                "renyi:2"
            )
            medians[i, j], stds[i, j] = np.median(draws), draws.std()

    def rows(name: str, paper: tuple[float, ...], found: FloatArray) -> list[list[object]]:
        def line(label: str, values: object) -> list[object]:
            return [name, label, *(f"{value:.3f}" for value in np.asarray(values))]

        return [
            line("paper", paper),
            line("average", found.mean(axis=0)),
            line("smallest", found.min(axis=0)),
            line("largest", found.max(axis=0)),
            *(line(f"data set {i + 1}", row) for i, row in enumerate(found)),
        ]

    head = ["of 3000 draws", "", *(f"delta = {delta}" for delta in DELTAS)]
    publish(
        "table2",
        given.out,
        "# Table 2 of the paper",
        f"Rényi divergence of order 2; its true value is {true_value():.4f}.",
        table(head, rows("median", PAPER_MEDIANS, medians)),
        table(head, rows("standard deviation", PAPER_STDS, stds)),
    )


if __name__ == "__main__":
    main()

"""What each divergence means, in one sentence for readers who meet it for the first time."""

from __future__ import annotations

from cobpm.divergences import Divergence


def meaning(divergence: Divergence, first: str, second: str) -> str:
    """One sentence on a divergence from the first set to the second."""
    family, _, order = divergence.name.partition(":")
    return {
        "tv": "The largest difference between the shares that both have in any region. "
        "0: the same, 1: nothing in common.",
        "hellinger": "From 0, the same, to 1, nothing in common. Differences in rare places count "
        "for more than in the total variation.",
        "squared_hellinger": "The square of the Hellinger distance, from 0 to 1.",
        "kl": f"How strongly one point of {first} speaks against {second}, on average, in nats.",
        "reverse_kl": f"How strongly one point of {second} speaks against {first}, on average, "
        "in nats.",
        "jeffreys": "The Kullback-Leibler divergences both ways, added.",
        "js": "How much one point says about which of the two it is from, in nats. "
        "At most log 2 = 0.693.",
        "chi2": f"The mean square of the relative difference, seen from {second}. "
        "Rare places can dominate it.",
        "renyi": _renyi(order, first),
        "tsallis": "A family with the Kullback-Leibler divergence at order 1.",
        "alpha": "A family with the Kullback-Leibler divergence at order 1, and the reverse one at "
        "order 0.",
    }.get(family, "The divergence of the function that was given.")


def _renyi(order: str, first: str) -> str:
    try:
        more = float(order) > 1
    except ValueError:
        more = True
    return (
        f"Like the Kullback-Leibler divergence, but places where {first} is far denser count for "
        f"{'more' if more else 'less'}."
    )

"""Clustering and classification of images: the paper's real data, or textures that anybody has.

An image is a sample set of patches, and images are compared by the Rényi divergence of order ½
between their sets. The paper's scenes are not ours to ship: `--data` names their folder. Without
it, squares of three pictures of surfaces take their place, to show that everything works.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy import stats

from cobpm.arrays import FloatArray, IntArray
from cobpm.experiments import image_methods as methods
from cobpm.experiments.framework import Result, Settings, Unavailable
from cobpm.experiments.image_features import (
    Bytes,
    Patches,
    Pictures,
    cache_folder,
    check_sizes,
    descriptors,
    principal,
    scenes,
    textures,
)
from cobpm.progress import Progress

NAME = "images"
TITLE = "Clustering and classifying images"
SIDE = 64  # of the squares cut from the textures, in pixels
DIMENSIONS = 2
NEIGHBOURS = (
    1,
    10,
)  # of PC-k: the paper does not say which it took here, and takes these elsewhere
MAIN_GRAPH = "neighbours"
METHODS = {
    "cobpm": "co-BPM",
    "pc10": "PC-10",
    "pc1": "PC-1",
    "bow": "bag of words",
    "ratio": "ratio model",
}
VARIED = ("cobpm", "pc10", "bow")  # methods that other features are tried with
# Fei-Fei and Perona take SIFT of patches with random widths of 10 to 30 pixels.
MAIN_PATCHES = Patches("sift", 10, 30, 40)
VARIANTS = {
    "SIFT, 10 to 30 pixels": MAIN_PATCHES,
    "SIFT, 16 pixels": replace(MAIN_PATCHES, smallest=16, largest=16),
    "SIFT, 16 pixels, flat patches short": Patches("sift-flat", 16, 16, 40),
    "11 × 11 grey values, 10 to 30 pixels": replace(MAIN_PATCHES, kind="grey"),
}
PAPER = {
    "clusters": {"cobpm": 0.830, "pc": 0.749, "bow": 0.722},
    "classes": {"cobpm": 0.778},  # and "about 3%" and "5%" more than the others
    "p": {
        "clusters": {"pc": 7.97e-13, "bow": 2.2e-16},  # the last an upper bound
        "classes": {"pc": 9.1e-4, "bow": 8.6e-6},
    },
}
ROUNDING = 1e-9
DRAWING, MODELLING, VARYING = 0, 1, 2  # labels of random streams


@dataclass(frozen=True)
class Plan:
    """How much of everything."""

    train: int  # images of each class
    test: int  # further images
    repeats: int
    grid: int
    draws: int  # of the posterior
    words: int
    topics: int
    side_train: int  # images of each class in the side questions: pairs, and other features
    variant_repeats: int


PAPERS_PLAN = Plan(
    train=50,
    test=100,
    repeats=20,
    grid=40,
    draws=100,
    words=100,
    topics=20,
    side_train=25,
    variant_repeats=5,
)
TEXTURE_PLAN = replace(PAPERS_PLAN, train=30, test=45, grid=16, words=50, topics=10, side_train=15)
QUICK_PLAN = Plan(
    train=8,
    test=12,
    repeats=2,
    grid=12,
    draws=50,
    words=20,
    topics=5,
    side_train=6,
    variant_repeats=1,
)


@dataclass(frozen=True, eq=False)
class Drawn:
    """The images of one repetition: those to be clustered, then those to be classified."""

    images: IntArray
    labels: IntArray
    train: int


@dataclass(frozen=True, eq=False)
class First:
    """The images to be clustered of the first repetition."""

    labels: IntArray
    points: list[FloatArray]
    matrix: FloatArray  # by co-BPM


@dataclass(eq=False)
class Scores:
    """Accuracies of one method, one number per repetition."""

    clusters: dict[str, list[float]] = field(default_factory=dict)  # by graph
    matched: dict[str, list[float]] = field(default_factory=dict)
    classes: list[float] = field(default_factory=list)
    unsettled: int = 0  # repetitions in which the engine warned that it has not converged

    def add(self, method: str, matrix: FloatArray, drawn: Drawn, count: int, seed: int) -> None:
        """Cluster the first images, and classify the others by them."""
        train, labels = drawn.train, drawn.labels
        for graph in methods.GRAPHS:
            links = methods.graph(matrix[:train, :train], graph, squared=method != "bow")
            found = methods.clusters(links, count, seed)
            accuracy = methods.cluster_accuracy(found, labels[:train])
            self.clusters.setdefault(graph, []).append(accuracy)
            matched = methods.matched_accuracy(found, labels[:train])
            self.matched.setdefault(graph, []).append(matched)
        if train < len(labels):
            found = methods.classify(matrix[train:, :train], labels[:train])
            self.classes.append(float(np.mean(found == labels[train:])))
        else:
            self.classes.append(methods.left_out_accuracy(matrix, labels))


def check(settings: Settings) -> None:
    """Refuse pictures that the experiment cannot do with."""
    prepare(settings)


def run(settings: Settings, progress: Progress) -> Result:
    """Everything: the repetitions, pairs against a shared partition, and other features."""
    from cobpm.experiments import images_page as page

    plan, pictures = prepare(settings)
    patches = replace(MAIN_PATCHES, grid=plan.grid)
    vectors = descriptors(pictures, patches, _part(progress, 0.0, 0.05), cache_folder())
    part = _part(progress, 0.05, 0.7)
    scores, share, first = repetitions(vectors, pictures, plan, settings, part)
    progress("pair by pair", 0.7)
    pairs = compare_partitions(first, plan, len(pictures.classes))
    varied = vary(pictures, plan, settings, _part(progress, 0.78, 1.0))
    progress("drawing", 1.0)
    numbers = {
        "data": {
            "scenes": settings.data is not None,
            "classes": pictures.classes,
            "pictures": np.bincount(pictures.labels).tolist(),
            "left_out": pictures.left_out,
        },
        "plan": asdict(plan),
        "patches": asdict(patches),
        "variance_share": share,
        "scores": {name: asdict(one) for name, one in scores.items()},
        "t_tests": {what: t_tests(scores, what) for what in ("clusters", "classes")},
        "partitions": pairs,
        "variants": {
            label: {name: asdict(one) for name, one in by_method.items()}
            for label, by_method in varied.items()
        },
        "embedding": embed(first),
        "paper": PAPER,
    }
    return Result(
        numbers,
        page.draw(numbers),
        page.caption(numbers),
        page.sections(numbers),
        page.verdict(numbers),
    )


def repetitions(
    vectors: Bytes, pictures: Pictures, plan: Plan, settings: Settings, progress: Progress
) -> tuple[dict[str, Scores], FloatArray, First]:
    """Scores of all methods, the mean share of variance, and the first repetition."""
    scores = {name: Scores() for name in METHODS}
    shares, firsts = [], []
    for repeat in range(plan.repeats):
        drawn = draw(pictures, plan, settings.rng(DRAWING, repeat))
        points, share = project(vectors, drawn)
        shares.append(share)
        part = _part(progress, *((repeat + step) / plan.repeats for step in (0, 1)))
        rng = settings.rng(MODELLING, repeat)
        found, unsettled = matrices(vectors, points, drawn, plan, rng, METHODS, part)
        for name, matrix in found.items():
            scores[name].add(name, matrix, drawn, len(pictures.classes), repeat)
            scores[name].unsettled += name in unsettled
        if repeat == 0:
            train = drawn.train
            firsts = [First(drawn.labels[:train], points[:train], found["cobpm"][:train, :train])]
    return scores, np.mean(shares, axis=0), firsts[0]


def prepare(settings: Settings) -> tuple[Plan, Pictures]:
    """The pictures and how many of them to use, after a look whether there are enough."""
    if settings.data is None:
        pictures, full = textures(SIDE), TEXTURE_PLAN
    else:
        pictures, full = scenes(settings.data), PAPERS_PLAN
    plan: Plan = settings.choose(full, QUICK_PLAN)
    counts = np.bincount(pictures.labels, minlength=len(pictures.classes))
    for name, count in zip(pictures.classes, counts, strict=True):
        if count < plan.train:
            raise Unavailable(
                f"There are too few pictures of the class '{name}': {count} different ones, where "
                f"the experiment takes {plan.train}."
            )
    left = int(counts.sum()) - plan.train * len(counts)
    if left < plan.test:
        raise Unavailable(
            f"There are too few pictures: {int(counts.sum())} different ones, where the "
            f"experiment takes {plan.train} of each class and {plan.test} more."
        )
    check_sizes(pictures, max(VARIANTS.values(), key=lambda patches: patches.largest))
    return plan, pictures


def draw(pictures: Pictures, plan: Plan, rng: np.random.Generator) -> Drawn:
    """Images to cluster, equally many of each class, and images to classify from all the rest."""
    classes = range(len(pictures.classes))
    chosen = np.concatenate(
        [rng.choice(np.flatnonzero(pictures.labels == one), plan.train, False) for one in classes]
    )
    rest = np.setdiff1d(np.arange(len(pictures.labels)), chosen)
    images = np.concatenate([chosen, rng.choice(rest, plan.test, False)])
    return Drawn(images, pictures.labels[images], len(chosen))


def project(vectors: Bytes, drawn: Drawn) -> tuple[list[FloatArray], FloatArray]:
    """The patches of each image in two dimensions: the main ones of the images to cluster."""
    projection = principal((vectors[one] for one in drawn.images[: drawn.train]), DIMENSIONS)
    return [projection(vectors[one]) for one in drawn.images], projection.share


def matrices(
    vectors: Bytes,
    points: Sequence[FloatArray],
    drawn: Drawn,
    plan: Plan,
    rng: np.random.Generator,
    wanted: Sequence[str] | dict[str, str],
    progress: Progress,
) -> tuple[dict[str, FloatArray], list[str]]:
    """Dissimilarities of all images from those to cluster, and whose posterior is in doubt."""
    found: dict[str, FloatArray] = {}
    unsettled: list[str] = []
    seed = int(rng.integers(2**31))
    ks = [k for k in NEIGHBOURS if f"pc{k}" in wanted]
    # The neighbours take longest, and the others leave processors idle now and then.
    with methods.neighbours_beside(points, drawn.train, ks) as neighbours:
        for done, (name, model) in enumerate((("cobpm", "paper"), ("ratio", "ratio"))):
            if name in wanted:
                progress(METHODS[name], 0.1 * done)
                found[name], settled = methods.by_cobpm(points, model, "joint", plan.draws, seed)
                unsettled += [name] * (not settled)
        if "bow" in wanted:
            progress(METHODS["bow"], 0.2)
            sets = [vectors[one] for one in drawn.images]
            found["bow"] = methods.by_words(sets, drawn.train, plan.words, plan.topics, rng)
        for k, matrix in neighbours(_part(progress, 0.3, 1.0)).items():
            found[f"pc{k}"] = matrix
    return {name: found[name] for name in wanted}, unsettled


def compare_partitions(first: First, plan: Plan, count: int) -> dict[str, Any]:
    """Some images of the first repetition: a partition per pair against a shared one."""
    of_class = (np.flatnonzero(first.labels == one) for one in range(count))
    some = np.concatenate([images[: plan.side_train] for images in of_class])
    labels, points = first.labels[some], [first.points[one] for one in some]
    joint, by_pair = (
        methods.by_cobpm(points, "paper", partition, plan.draws, 0)[0]
        for partition in ("joint", "pair")
    )
    found: dict[str, Any] = {}
    for name, matrix in (("joint", joint), ("pair", by_pair)):
        scores = Scores()
        scores.add("cobpm", matrix, Drawn(labels, labels, len(labels)), count, 0)
        found[name] = {
            "clusters": {graph: values[0] for graph, values in scores.clusters.items()},
            "classes": scores.classes[0],
        }
    upper = np.triu_indices(len(labels), 1)
    found["rank_correlation"] = float(stats.spearmanr(joint[upper], by_pair[upper])[0])
    found["medians"] = {
        "joint": float(np.median(joint[upper])),
        "pair": float(np.median(by_pair[upper])),
    }
    return found


def vary(
    pictures: Pictures, plan: Plan, settings: Settings, progress: Progress
) -> dict[str, dict[str, Scores]]:
    """Other features, on draws of their own: clusters, and each image classified by the others."""
    plan = replace(plan, train=plan.side_train, test=0)
    draws = [
        draw(pictures, plan, settings.rng(VARYING, repeat))
        for repeat in range(plan.variant_repeats)
    ]
    used = np.unique(np.concatenate([drawn.images for drawn in draws]))
    subset = replace(
        pictures,
        names=tuple(pictures.names[one] for one in used),
        images=tuple(pictures.images[one] for one in used),
        labels=pictures.labels[used],
    )
    found: dict[str, dict[str, Scores]] = {}
    for number, (label, patches) in enumerate(VARIANTS.items()):
        step = _part(progress, number / len(VARIANTS), (number + 1) / len(VARIANTS))
        vectors = descriptors(subset, replace(patches, grid=plan.grid), _part(step, 0, 0.1))
        found[label] = {name: Scores() for name in VARIED}
        for repeat, drawn in enumerate(draws):
            here = replace(drawn, images=np.searchsorted(used, drawn.images))
            rng = settings.rng(VARYING, repeat, number)
            points, _ = project(vectors, here)
            ends = (0.1 + 0.9 * (repeat + part) / len(draws) for part in (0, 1))
            ours, unsettled = matrices(vectors, points, here, plan, rng, VARIED, _part(step, *ends))
            for name, matrix in ours.items():
                found[label][name].add(name, matrix, here, len(pictures.classes), repeat)
                found[label][name].unsettled += name in unsettled
    return found


def t_tests(scores: dict[str, Scores], what: str) -> dict[str, dict[str, float | None]]:
    """Accuracy of co-BPM against the others': mean difference, and p-values of two t-tests.

    "welch" takes the repetitions of the two methods for independent, as R's `t.test` does by
    default; "paired" knows that both methods saw the same images.
    """

    def values(name: str) -> FloatArray:
        one = scores[name]
        return np.array(one.clusters[MAIN_GRAPH] if what == "clusters" else one.classes)

    found: dict[str, dict[str, float | None]] = {}
    ours = values("cobpm")
    for name in METHODS:
        if name == "cobpm":
            continue
        theirs = values(name)
        found[name] = {"difference": float((ours - theirs).mean()), "welch": None, "paired": None}
        # Without a spread there is nothing to test.
        if min(np.ptp(ours), np.ptp(theirs)) > ROUNDING:
            found[name]["welch"] = float(stats.ttest_ind(ours, theirs, equal_var=False)[1])
        if np.ptp(ours - theirs) > ROUNDING:
            found[name]["paired"] = float(stats.ttest_rel(ours, theirs)[1])
    return found


def embed(first: First) -> dict[str, Any]:
    """The images to cluster of the first repetition in the plane, by classical scaling.

    A Rényi divergence grows like a squared distance and is taken for one.
    """
    count = len(first.labels)
    centre = np.eye(count) - 1 / count
    symmetric = (first.matrix + first.matrix.T) / 2
    values, directions = np.linalg.eigh(-centre @ symmetric @ centre / 2)
    best = np.argsort(values)[::-1][:2]
    chosen = directions[:, best] * np.sqrt(np.maximum(values[best], 0))
    chosen = chosen * np.sign(chosen[np.argmax(np.abs(chosen), axis=0), range(2)])
    return {"points": chosen.round(5), "labels": first.labels}


def _part(progress: Progress, low: float, high: float) -> Progress:
    """Progress of a part of the work, as progress of the whole."""
    return lambda stage, done: progress(stage, low + (high - low) * done)

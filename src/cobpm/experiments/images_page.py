"""The page and the picture of the experiment on images, written from its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cobpm.experiments.framework import new_figure, table
from cobpm.experiments.image_features import FLAT
from cobpm.experiments.image_methods import GRAPHS
from cobpm.experiments.images import MAIN_GRAPH, METHODS, VARIED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = Mapping[str, Any]
PAPERS_REPEATS = 20
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
PAPERS = {"cobpm": "cobpm", "pc10": "pc", "pc1": "pc", "bow": "bow"}  # the paper's names
WORDS = {"clusters": "clustering", "classes": "classification"}


def caption(numbers: Numbers) -> str:
    """One sentence on what the picture shows."""
    return (
        f"Accuracies of clustering and classification in {numbers['plan']['repeats']} repetitions, "
        "and the images of the first repetition in the plane by the divergences of co-BPM"
    )


def verdict(numbers: Numbers) -> str:
    """One sentence that compares with the paper."""
    said = {
        what: ", ".join(
            f"{METHODS[name]} {_percent(_median(numbers, name, what))}"
            for name in ("cobpm", "pc10", "bow")
        )
        for what in WORDS
    }
    if not numbers["data"]["scenes"]:
        return (
            f"Textures in place of the paper's scenes (see --data). Median accuracy: clustering "
            f"{said['clusters']}; classification {said['classes']}."
        )
    paper = numbers["paper"]
    return (
        f"Median accuracy of clustering: {said['clusters']} (paper "
        f"{_percents(paper['clusters'].values())}); of classification: {said['classes']} (paper "
        f"{_percent(paper['classes']['cobpm'])} for co-BPM, about 3% and 5% less for the others)."
    )


def sections(numbers: Numbers) -> list[str]:
    """The text of the page."""
    return [
        *_setting(numbers),
        "## Accuracy",
        _accuracies(numbers),
        _on_measures(numbers),
        "## Differences between the methods",
        *_tests(numbers),
        "## What the paper leaves open, and what is done here",
        _choices(numbers),
        "## Other graphs",
        *_graphs(numbers),
        "## Other features",
        *_variants(numbers),
        "## One partition for all, or one for each pair",
        *_partitions(numbers),
        *(["## Where they differ", _differences(numbers)] if numbers["data"]["scenes"] else []),
    ]


# --- the text ----------------------------------------------------------------------------------


def _setting(numbers: Numbers) -> list[str]:
    data, plan, patches = numbers["data"], numbers["plan"], numbers["patches"]
    share = sum(numbers["variance_share"])
    if data["scenes"]:
        counts = zip(data["pictures"], data["classes"], strict=True)
        what = (
            "The images are the paper's: "
            + ", ".join(f"{count} of {name}" for count, name in counts)
            + ". They are not part of this package; `--data` names a folder that has a folder for "
            "each class."
        )
        if left_out := data["left_out"]:
            what += f" Left out because equal to an earlier one: {', '.join(left_out)}."
    else:
        what = (
            "The paper's images are not part of this package. Without `--data`, squares cut from "
            f"three pictures of scikit-image ({', '.join(data['classes'])}; CC0) take their "
            "place: this page shows that everything works, and says nothing about the paper."
        )
    each = plan["grid"] ** 2
    return [
        what,
        f"Each repetition draws {plan['train']} images of every class to be clustered, and "
        f"{plan['test']} of the rest to be classified by a vote of their 9 nearest neighbours "
        f"among the first. An image is {each:,} patches on a {plan['grid']} × {plan['grid']} grid, "
        f"described by SIFT (widths of {patches['smallest']:g} to {patches['largest']:g} pixels) "
        "and projected on the two main directions of the images to be clustered, which hold "
        f"{share:.0%} of the variance. Images are compared by the Rényi divergence of order ½ "
        "between their sets of patches. The bag of words has "
        f"{plan['words']} words of whole SIFT vectors and {plan['topics']} topics, and compares "
        f"images by the Euclidean distance. There are {plan['repeats']} repetitions"
        + (f"; the paper has {PAPERS_REPEATS}." if plan["repeats"] != PAPERS_REPEATS else "."),
        f"The vectors of all patches, {sum(data['pictures']) * each * 128 / 1e6:.0f} MB, are kept "
        "in the cache folder of the user for the next run; the environment variable `COBPM_CACHE` "
        "names another.",
    ]


def _accuracies(numbers: Numbers) -> str:
    scenes, paper = numbers["data"]["scenes"], numbers["paper"]
    head = ["median (range) of the accuracy", "clustering", "one to one", "classification"]
    if scenes:
        head = [*head[:2], "paper", *head[2:], "paper"]
    rows = []
    for name, label in METHODS.items():
        row = [
            label,
            _spread(_values(numbers, name, "clusters")),
            _spread(numbers["scores"][name]["matched"][MAIN_GRAPH]),
            _spread(_values(numbers, name, "classes")),
        ]
        if scenes:
            theirs = PAPERS.get(name, "")
            clusters, classes = (paper[what].get(theirs) for what in WORDS)
            less = {"pc": "about 3% less", "bow": "about 5% less"}.get(theirs, "")
            row.insert(2, _percent(clusters) if clusters else "")
            row.append(_percent(classes) if classes else less)
        rows.append(row)
    return table(head, rows)


def _on_measures(numbers: Numbers) -> str:
    gaps = {
        name: _median(numbers, name, "clusters")
        - float(np.median(numbers["scores"][name]["matched"][MAIN_GRAPH]))
        for name in METHODS
    }
    widest = max(gaps, key=lambda name: gaps[name])
    return (
        "Clustering accuracy is as the paper defines it: the share of the commonest class in a "
        "cluster, averaged over the clusters whatever their sizes. A small pure cluster counts as "
        "much as a large mixed one, so this measure flatters uneven clusters. *One to one* is the "
        "share of images in the right cluster when each cluster stands for one class. Between the "
        f"medians of the two lie {gaps['cobpm'] * 100:.1f} points for co-BPM, and at most "
        f"{gaps[widest] * 100:.1f}, for {METHODS[widest]}. The ratio model is this package's "
        "default; the paper does not have it."
        + _doubts(
            {METHODS[name]: one for name, one in numbers["scores"].items()},
            numbers["plan"]["repeats"],
        )
    )


def _tests(numbers: Numbers) -> list[str]:
    scenes, paper = numbers["data"]["scenes"], numbers["paper"]["p"]
    head = ["co-BPM against", "task", "mean difference", "p, Welch", "p, paired"]
    rows = []
    for what, word in WORDS.items():
        for name, found in numbers["t_tests"][what].items():
            row = [
                METHODS[name],
                word,
                f"{found['difference'] * 100:+.1f}",
                *(_p(found[test]) for test in ("welch", "paired")),
            ]
            if scenes:
                theirs = paper[what].get(PAPERS.get(name, ""))
                bound = "below " if theirs == 2.2e-16 else ""
                row.append(f"{bound}{_p(theirs)}" if theirs else "")
            rows.append(row)
    return [
        table([*head, *["p, paper"] * scenes], rows),
        "Differences are in percentage points. Welch's test is the default of R, whose smallest "
        "p-value, 2.2·10⁻¹⁶, the paper reports; the paired one knows that all methods saw the same "
        "images. Repetitions share images, so both p-values are smaller than they should be."
        + _leads(numbers)
        * scenes,
    ]


def _leads(numbers: Numbers) -> str:
    """Which of the paper's four findings, co-BPM ahead of both others in both tasks, are here."""
    cases = [(what, name) for what in WORDS for name in ("pc10", "bow")]
    tests = [numbers["t_tests"][what][name] for what, name in cases]
    sure = [test["paired"] is not None and test["paired"] < 0.05 for test in tests]
    ahead, behind = (
        [
            f"{METHODS[name]} in {WORDS[what]}"
            for (what, name), test, known in zip(cases, tests, sure, strict=True)
            if known and sign * test["difference"] > 0
        ]
        for sign in (1, -1)
    )
    neither = "neither in either task"
    return (
        " In the paper co-BPM is ahead of PC-k and of the bag of words in both tasks. Here (PC-10, "
        f"paired test, level 5%) it is ahead of {' and of '.join(ahead) or neither}, and "
        f"behind {' and behind '.join(behind) or neither}."
    )


def _choices(numbers: Numbers) -> str:
    plan = numbers["plan"]
    return "\n".join(
        [
            "- *Features.* The paper refers to Fei-Fei and Perona (2005): SIFT, or 11 × 11 grey "
            "values, of patches on a grid with random widths of 10 to 30 pixels. It does not say "
            "which. SIFT is taken because it is what they find best; other features are below.",
            "- *A pilot came first.* Before these choices were made, seven kinds of SIFT had been "
            "tried on three draws of the scenes, and fifteen graphs on two kinds, the graphs with "
            "co-BPM alone. Five of the seven are not in the tables below. The best of these, a "
            "dense SIFT without smoothing whose shorter half of all vectors was left short, "
            "clustered better by some points, for co-BPM, than what this page uses. The features "
            "were then settled on by the paper's reference, and the graph for the reasons below; "
            "but not blindly. No numbers of the pilot were kept, so nothing else here rests on it.",
            "- *Graph of the spectral clustering.* The paper cites the tutorial of von Luxburg and "
            "says no more. Images are linked if one is among the 10 nearest neighbours of the "
            "other, which needs no scale and depends on the order of the dissimilarities only. "
            "In the pilot it was among the better ones for co-BPM. The table below has what two "
            "others give to every method.",
            "- *Which k in PC-k.* Elsewhere the paper takes 1 and 10; both are shown. The "
            "estimator is that of Póczos and Schneider (2011): the mean of both directions between "
            "images to be clustered, and the one from the image to be classified. Negative values "
            "are taken for zero.",
            "- *Partitions.* co-BPM here has one posterior over partitions that all images of a "
            f"repetition share ({plan['draws']} draws, posterior means). The paper has one for "
            "each pair, and names the shared one as an extension. The last section compares them.",
            "- *What the test images may be used for.* Directions, words and topics come from the "
            "images to be clustered. The shared partition is made for all images, without labels.",
        ]
    )


def _graphs(numbers: Numbers) -> list[str]:
    rows = [
        [label, *(_spread(numbers["scores"][name]["clusters"][graph]) for name in METHODS)]
        for graph, label in GRAPHS.items()
    ]
    return [
        table(["median (range), clustering", *METHODS.values()], rows),
        "The Gaussian ones are exp(−D / scale) of divergences D and exp(−d² / scale) of Euclidean "
        "distances d: with the median of all pairs as the scale, or with the distances to the 7th "
        "neighbours of both images (Zelnik-Manor and Perona 2004).",
    ]


def _variants(numbers: Numbers) -> list[str]:
    head = ["features", *(f"{METHODS[name]}, {word}" for word in WORDS.values() for name in VARIED)]
    rows = []
    for label, found in numbers["variants"].items():
        rows.append(
            [
                label,
                *(_percent(np.mean(_of(found[name], what))) for what in WORDS for name in VARIED),
            ]
        )
    plan = numbers["plan"]
    repeats = plan["variant_repeats"]
    return [
        table(head, rows),
        f"Means over {repeats} further draws of {plan['side_train']} images per class, the same "
        "for all features; each image is classified by the others. In *flat patches short*, SIFT "
        f"vectors of patches with a mean gradient below {FLAT:g} grey levels per pixel are shorter "
        "in proportion, where SIFT as it is gives all of them the same length. (Code of that time "
        "for scenes has such a rule.) The first row is what the rest of this page uses."
        + _doubts({label: found["cobpm"] for label, found in numbers["variants"].items()}, repeats),
    ]


def _doubts(scores: Mapping[str, Any], repeats: int) -> str:
    """Where the engine said that its draws are not to be trusted."""
    said = [
        f"{label}: {one['unsettled']} of {repeats}"
        for label, one in scores.items()
        if one["unsettled"]
    ]
    if not said:
        return ""
    return " The engine of co-BPM warned that it had not converged in " + "; ".join(said) + "."


def _partitions(numbers: Numbers) -> list[str]:
    found = numbers["partitions"]
    rows = [
        [
            label,
            *(_percent(found[name]["clusters"][graph]) for graph in GRAPHS),
            _percent(found[name]["classes"]),
            f"{found['medians'][name]:.3f}",
        ]
        for name, label in (("joint", "shared by all"), ("pair", "one per pair"))
    ]
    head = ["partition", *(f"clustering, {label}" for label in GRAPHS.values())]
    return [
        table([*head, "classification", "median divergence"], rows),
        f"For {numbers['plan']['side_train']} images of each class of the first repetition, each "
        "classified by the others. "
        f"The rank correlation of the divergences is {found['rank_correlation']:.3f}. "
        + _better_partition(found)
        + " This is a single draw. All other numbers of this page are from shared partitions.",
    ]


def _differences(numbers: Numbers) -> str:
    """How far our accuracies are from the paper's, and how near co-BPM comes with any choice."""
    paper = numbers["paper"]
    gaps = ", ".join(
        f"{METHODS[name]} {100 * (_median(numbers, name, 'clusters') - theirs):+.1f}"
        for name in ("cobpm", "pc10", "bow")
        for theirs in [paper["clusters"][PAPERS[name]]]
    )
    classes = 100 * (_median(numbers, "cobpm", "classes") - paper["classes"]["cobpm"])
    tried = [
        (float(np.median(numbers["scores"]["cobpm"]["clusters"][graph])), f"the graph *{label}*")
        for graph, label in GRAPHS.items()
    ]
    tried += [
        (float(np.mean(_of(found["cobpm"], "clusters"))), f"the features *{label}* in the table")
        for label, found in numbers["variants"].items()
    ]
    tried += [
        (
            numbers["partitions"]["pair"]["clusters"][graph],
            f"a partition per pair and *{label}*, in a single draw",
        )
        for graph, label in GRAPHS.items()
    ]
    best, choice = max(tried, key=lambda one: one[0])
    short = best < paper["clusters"]["cobpm"]
    return (
        f"Median accuracies less those of the paper, in points: clustering {gaps}; classification "
        f"co-BPM {classes:+.1f}. Of all choices on this page the best for clustering with co-BPM, "
        f"{choice}, has {_percent(best)}, {'below' if short else 'not below'} the paper's "
        f"{_percent(paper['clusters']['cobpm'])}. "
        + ("So nothing tried here explains the paper's number. " if short else "")
        + "The paper names neither the features nor the graph that it took."
        + " Either moves the accuracy of co-BPM by more than lies between the methods here."
        * _choices_move_more(numbers)
    )


def _choices_move_more(numbers: Numbers) -> bool:
    """Whether features and graphs make a larger difference to co-BPM than the method does."""

    def width(values: Sequence[float]) -> float:
        return max(values) - min(values)

    scores = numbers["scores"]
    methods = width([_median(numbers, name, "clusters") for name in ("cobpm", "pc10", "bow")])
    graphs = width([float(np.median(scores["cobpm"]["clusters"][graph])) for graph in GRAPHS])
    found = numbers["variants"].values()
    features = width([float(np.mean(_of(one["cobpm"], "clusters"))) for one in found])
    return min(graphs, features) > methods


def _better_partition(found: Mapping[str, Any]) -> str:
    """What the choice of partitions may be worth, in points of accuracy."""
    gains = [
        100 * (found["pair"]["clusters"][graph] - found["joint"]["clusters"][graph])
        for graph in GRAPHS
    ]
    classes = 100 * (found["pair"]["classes"] - found["joint"]["classes"])
    return (
        "A partition per pair, as in the paper, changes the accuracy of clustering by "
        f"{min(gains):+.1f} to {max(gains):+.1f} points and that of classification by "
        f"{classes:+.1f}."
    )


def _of(scores: Mapping[str, Any], what: str) -> Sequence[float]:
    return cast(
        Sequence[float],
        scores["clusters"][MAIN_GRAPH] if what == "clusters" else scores["classes"],
    )


def _values(numbers: Numbers, name: str, what: str) -> Sequence[float]:
    return _of(numbers["scores"][name], what)


def _median(numbers: Numbers, name: str, what: str) -> float:
    return float(np.median(_values(numbers, name, what)))


def _percent(value: Any) -> str:
    return f"{100 * float(value):.1f}%"


def _percents(values: Any) -> str:
    return ", ".join(map(_percent, values))


def _spread(values: Sequence[float]) -> str:
    low, middle, high = (100 * q for q in np.quantile(values, (0, 0.5, 1)))
    return f"{middle:.1f}% ({low:.0f} to {high:.0f})"


def _p(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:.3f}" if value >= 1e-3 else f"{value:.1e}"


# --- the picture -------------------------------------------------------------------------------


def draw(numbers: Numbers) -> Figure:
    """Box-plots as in the paper, and the images in the plane."""
    figure = new_figure(11.0, 4.2)
    left, middle, right = cast(Any, figure.subplots(1, 3, width_ratios=(1, 1, 1.05)))
    for ax, what in ((left, "clusters"), (middle, "classes")):
        _boxes(ax, numbers, what)
    _plane(right, numbers)
    return figure


def _boxes(ax: Axes, numbers: Numbers, what: str) -> None:
    values = [100 * np.array(_values(numbers, name, what)) for name in METHODS]
    drawn = ax.boxplot(values, widths=0.6, patch_artist=True, medianprops={"color": "black"})
    for box, name in zip(drawn["boxes"], METHODS, strict=True):
        box.set_facecolor("#9ecae1" if name in ("cobpm", "ratio") else "#dddddd")
    if numbers["data"]["scenes"]:
        told = [
            (place, 100 * numbers["paper"][what][PAPERS[name]])
            for place, name in enumerate(METHODS, 1)
            if PAPERS.get(name) in numbers["paper"][what]
        ]
        ax.plot(*zip(*told, strict=True), "D", color="red", markersize=5, label="paper's median")
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.13 * (high - low))  # room for the legend, clear of the boxes
        ax.legend(loc="upper right", fontsize="small")
    labels = [label.replace(" ", "\n", 1) for label in METHODS.values()]
    ax.set_xticks(range(1, len(METHODS) + 1), labels, fontsize="small")
    ax.set_ylabel("accuracy, %")
    ax.grid(axis="y", alpha=0.3)
    ax.set_title(f"{WORDS[what].capitalize()}", fontsize="medium")


def _plane(ax: Axes, numbers: Numbers) -> None:
    points = np.asarray(numbers["embedding"]["points"])
    labels = np.asarray(numbers["embedding"]["labels"])
    shapes = ("o", "s", "^", "D")
    for number, name in enumerate(numbers["data"]["classes"]):
        x, y = points[labels == number].T
        ax.scatter(x, y, s=14, color=COLOURS[number], marker=shapes[number], alpha=0.8, label=name)
    ax.set(xticks=[], yticks=[])
    ax.set_box_aspect(1)
    ax.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=2)
    ax.set_title("Images of one repetition, by co-BPM", fontsize="medium")

"""Sketches in the place of samples: the same answers as from rows at that resolution."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cobpm
from cobpm import Grid, InputError, Sketch, _core
from cobpm.api import _posterior, _settings_of_compare
from cobpm.ratio_model import RatioModel
from cobpm.sketch_permutations import _drawn, affordable_cells
from cobpm.sketched import Sketched

GRID = Grid.from_bounds(["u", "v"], (-4, 4))


def rows(shift=0.0, n=1000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal([shift, 0.0], 1.0, (n, 2)), columns=["u", "v"])


def sketches(shift=0.5, max_cells=10_000, n=1000):
    tables = rows(n=n), rows(shift, n, 1)
    return [Sketch.of(table, grid=GRID, max_cells=max_cells) for table in tables]


def posterior_of(sketched, model):
    given = _settings_of_compare({"model": model}, "fit") | {"draws": 50}
    return _posterior(sketched, "fit", **given, rng=3, progress=False)


@pytest.mark.parametrize("model", ["ratio", "paper"])
def test_rows_one_by_one_or_pooled(model):
    pooled = Sketched.of(Sketch.of([rows(n=300), rows(0.5, 300, 1)], max_cells=60), "fit")
    # The same with a row for each of the points, in any order.
    rng = np.random.default_rng(0)
    singles = [
        np.column_stack([np.repeat(c[:, 0], c[:, 1].astype(int)), np.ones(300, np.uint64)])
        for c in pooled.values
    ]
    one = replace(pooled, values=tuple(rng.permutation(c) for c in singles))
    assert one.sizes == pooled.sizes == (300, 300)
    mine, theirs = posterior_of(pooled, model), posterior_of(one, model)
    np.testing.assert_array_equal(mine.masses, theirs.masses)
    assert mine.log_evidence == theirs.log_evidence
    assert mine.estimate("kl", read_out="mean") == theirs.estimate("kl", read_out="mean")


@pytest.mark.parametrize("model", ["ratio", "paper"])
def test_close_to_the_answer_from_rows(model):
    x, y = rows(n=5000), rows(0.5, 5000, 1)
    frames = {"frames": ["ranks", "warped", "range", "arctan"]} if model == "ratio" else {}
    from_rows = cobpm.compare(x, y, model=model, rng=1, bounds=None, **frames)
    # A grid of ranks for the paper's model would be another model: it sees shapes.
    grid = Grid.from_bounds(["u", "v"], [(np.min([x, y]), np.max([x, y]))] * 2)
    ranks = None if model == "ratio" else grid
    a, b = (Sketch.of(t, grid=ranks or Sketch.of([x, y]).grid) for t in (x, y))
    found = cobpm.compare(a, b, model=model, rng=1)
    for name in ("kl", "tv", "hellinger"):
        spread = from_rows.draws(name).std()
        assert found.estimate(name) == pytest.approx(from_rows.estimate(name), abs=spread)


def test_the_papers_model_on_a_grid_that_is_the_domain():
    # Points in the middle of cells lose nothing: the domain and the grid are then the same, but
    # for cuts below the cells, which are all but impossible.
    rng = np.random.default_rng(2)
    x, y = ((rng.integers(0, 4096, (200, 2)) + 0.5) / 4096 for _ in range(2))
    bounds = (0.0, 1.0)
    from_rows = cobpm.compare(x, y, model="paper", bounds=bounds, rng=5, engine="exact")
    a, b = (Sketch.of(t, bounds=bounds) for t in (x, y))
    found = cobpm.compare(a, b, model="paper", rng=5, engine="exact")
    assert found.log_evidence == pytest.approx(from_rows.log_evidence, rel=1e-6)
    np.testing.assert_array_equal(found.partitions.splits, from_rows.partitions.splits)
    np.testing.assert_array_equal(found.masses, from_rows.masses)


def test_all_that_a_posterior_does(tmp_path):
    a, b = sketches()
    post = cobpm.compare(a, b, rng=0, draws=200)
    assert post.samples is None
    assert post.names == ("x", "y")
    assert post.report.frames == ("grid", "ranks", "warped", "range", "arctan")
    assert any("need rows" in notice for notice in post.notices)
    ratios = post.log_ratio(rows(n=20))
    left = rows(n=20)["u"].to_numpy() < 0
    assert ratios[left].mean() > ratios[~left].mean()
    table = post.regions()
    assert table["points_x"].sum() == table["points_y"].sum() == 1000
    assert list(post.summary().index)
    assert post.same_probability() < 0.01
    post.save(tmp_path / "post")
    loaded = cobpm.load(tmp_path / "post")
    np.testing.assert_array_equal(loaded.masses, post.masses)
    np.testing.assert_array_equal(loaded.log_ratio(rows(n=20)), ratios)
    about = post.provenance["settings"]["sketch"]
    assert about["bits"] == (a.rename("x") + b.rename("y")).bits
    assert loaded.provenance == post.provenance


def test_names_and_lists_and_rows_beside_sketches():
    a, b = sketches()
    both = a.rename("a") + b.rename("b")
    by_name, as_one = (cobpm.fit(s, rng=0, draws=50) for s in ({"a": a, "b": b}, both))
    np.testing.assert_array_equal(by_name.masses, as_one.masses)
    assert by_name.names == as_one.names == ("a", "b")
    assert cobpm.fit([a, b], rng=0, draws=5).names == ("1", "2")
    mixed = cobpm.compare(a, rows(0.5, 1000, 1), rng=0, draws=50)
    np.testing.assert_array_equal(mixed.masses, cobpm.compare(a, b, rng=0, draws=50).masses)
    assert cobpm.fit(a, rng=0, draws=5, max_regions=2000).model.delta == 1.0


def test_pairwise(tmp_path):
    a, b = sketches(n=300)
    three = a.rename("a") + b.rename("b") + Sketch.of({"c": rows(1.0, 300, 2)}, grid=GRID)
    joint = cobpm.pairwise(three, rng=0, draws=50)
    assert joint.names == ("a", "b", "c")
    assert joint.matrix[0, 2] > joint.matrix[0, 1] > 0
    path = tmp_path / "pairs"
    pairs = cobpm.pairwise(three, partition="pair", rng=0, draws=50, checkpoint=path)
    again = cobpm.pairwise(three, partition="pair", rng=0, draws=50, checkpoint=path)
    np.testing.assert_array_equal(pairs.matrix, again.matrix)
    assert path.read_text().count("\n") == 4
    coarser = three.within(50)
    with pytest.raises(InputError, match="belong to the same question"):
        cobpm.pairwise(coarser, partition="pair", rng=0, draws=50, checkpoint=path)


def test_columns_in_one_cell_are_left_out():
    table = rows(n=200).assign(w=3.0)
    both = Sketch.of([table, (table * 1.1).assign(w=3.0)], max_cells=5000)
    for model in ("ratio", "paper"):
        post = cobpm.fit(both, model=model, rng=0, draws=20, max_regions=20_000)
        assert any("'w' in one cell" in notice for notice in post.notices), post.notices
        assert post.model.d == 2
        assert post.log_ratio(table).shape == (200,)
    alone = Sketch.of([np.ones(5), np.ones(7)])
    assert cobpm.fit(alone, rng=0, draws=20).estimate("tv") == 0.0


def test_rows_beyond_the_grid_are_told():
    far = rows()
    far.iloc[0] = 99.0
    post = cobpm.compare(Sketch.of(far, grid=GRID), sketches()[0], rng=0, draws=20)
    assert any("In 'x': 1 rows lie beyond" in notice for notice in post.notices)


def test_columns_with_few_cells_are_told():
    a, b = sketches(max_cells=16)
    assert a.column_bits == {"u": 2, "v": 2}
    said = cobpm.compare(a, b, rng=0, draws=20).notices
    assert any("column 'u' (and 1 more) is cut into 4." in s for s in said)
    fine = cobpm.compare(*sketches(), rng=0, draws=20).notices
    assert not any("is cut into" in sentence for sentence in fine)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a, b: cobpm.compare(a, b, bounds=(0, 1)), "be left out with sketches"),
        (lambda a, b: cobpm.test(a, b, bounds="ranks"), "be left out with sketches"),
        (lambda a, b: cobpm.compare(a, b, frames=["turned ranks"]), "do without rows"),
        (lambda a, b: cobpm.compare(a, b, frames=6), "number from 1 to 5"),
        (lambda a, b: cobpm.compare(a, b, frames=["grid", "grid"]), "each frame once"),
        (lambda a, b: cobpm.compare(a, b, frames=["grit"]), "frames"),
        (lambda a, b: cobpm.compare(a, rows().to_numpy(), frames=["grid", "rank"]), "Did you mean"),
        (lambda a, b: cobpm.compare(a.rename("1") + b, b), r"sketch\.select"),
        (lambda a, b: cobpm.fit([a.rename("1") + b, b]), r"fit\(sketch\)"),
        (lambda a, b: cobpm.compare(a, Sketch.of(rows())), "be the same for all sketches"),
        (lambda a, b: cobpm.compare(a, np.ones((3, 3))), "as many columns"),
        (lambda a, b: cobpm.fit({1: a, "1": b}), "differ as text"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call(*sketches(n=50))


@pytest.mark.parametrize("frames", [["grid"], ["ranks", "range"], 2])
def test_frames_that_are_asked_for(frames):
    a, b = sketches(n=100)
    post = cobpm.compare(a, b, frames=frames, draws=20, rng=0)
    assert post.report.frames == (("grid", "ranks") if frames == 2 else tuple(frames))


# --- the test of two samples ---------------------------------------------------------------------


def ratio(sketched, frame, depth=6):
    cells = sketched.encode(frame)
    model = RatioModel(cells.d, sketched.sizes)
    return _core.Ratio(
        cells.codes,
        cells.sets,
        2,
        depth,
        model.concentrations,
        model.stop,
        1,
        None,
        cells.weights,
        cells.resolution,
    )


@pytest.mark.parametrize("name", ["grid", "ranks"])
def test_labels_that_were_drawn(name):
    both = Sketch.of([rows(n=300), rows(0.5, 200, 1)], max_cells=30)
    sketched = Sketched.of(both, "test")
    (frame,) = sketched.frames([name])
    recursion = ratio(sketched, frame)
    counts, which = sketched.pooled()
    drawn = _drawn(counts, which, 300, 11, np.random.default_rng(0))
    assert drawn.shape == (2, len(which), 8)
    totals = drawn.sum(axis=1)
    assert (totals == 300).all()
    # The labels as they are come out as they do without a permutation.
    mine = np.concatenate([sketched.values[0][:, 1], np.zeros(len(sketched.values[1]))])
    drawn[0, :, 5] = mine
    found = recursion.given(drawn, 1)
    assert found[5] == pytest.approx(recursion.up(1), rel=1e-12)
    # A permutation comes out as a sketch of sets with these counts does.
    labelled = np.bincount(which, drawn[1, :, 2]).astype(np.uint64)
    keys = np.unique(np.concatenate([c[:, 0] for c in sketched.values]))
    sets = [
        np.column_stack([keys, part]) for part in (labelled, counts.astype(np.uint64) - labelled)
    ]
    other = replace(sketched, values=tuple(part[part[:, 1] > 0] for part in sets))
    assert other.sizes == (300, 200)
    assert found[10] == pytest.approx(ratio(other, frame).up(1), rel=1e-12)
    assert found[10] != pytest.approx(found[5], rel=1e-3)
    with pytest.raises(ValueError, match="counts are needed for each point"):
        recursion.given(drawn[:, 1:].copy(), 1)


def test_the_law_of_drawn_labels():
    counts, which = np.array([3, 5, 2, 40]), np.array([0, 1, 2, 3, 1, 3])
    drawn = _drawn(counts, which, 20, 8000, np.random.default_rng(1))
    by_cell = drawn[:, :4].transpose(1, 0, 2).reshape(4, -1)
    assert (drawn[:, 4:] == 0).all()
    assert (by_cell <= counts[:, None]).all()
    share, n = 20 / 50, 50
    error = np.sqrt(counts * share * (1 - share) * (n - counts) / (n - 1) / 8000)
    np.testing.assert_allclose(by_cell.mean(axis=1), counts * share, atol=5 * error.max())
    variance = counts * share * (1 - share) * (n - counts) / (n - 1)
    np.testing.assert_allclose(by_cell.var(axis=1), variance, rtol=0.12)


def test_a_test_of_sketches():
    a, b = sketches(shift=0.3, n=2000)
    found = cobpm.test(a, b, rng=0, permutations=99)
    assert found.pvalue == 0.01
    assert found.frames[0] == "grid"
    assert found.log_bayes_factor == pytest.approx(
        cobpm.compare(a, b, rng=0, draws=5).log_bayes_factor, rel=1e-12
    )
    assert found == cobpm.test(a, b, rng=0, permutations=99)
    same = cobpm.test(a, Sketch.of(rows(n=2000, seed=7), grid=GRID), rng=0, permutations=99)
    assert same.pvalue > 0.01


def test_the_cost_is_bounded():
    a, b = sketches(n=3000)
    most = affordable_cells(4000)
    assert most == 5000
    found = cobpm.test(a, b, permutations=4000, rng=0, frames=["grid"], max_regions=1000)
    assert any("was brought from" in notice for notice in found.notices)


def test_more_rows_than_labels_can_be_drawn_for():
    a = sketches(n=1000)[0]
    many = a
    for _ in range(20):
        many = many + many
    with pytest.raises(InputError, match="at most 999,999,999 rows"):
        cobpm.test(many, a)
    post = cobpm.compare(many, many.rename("again"), rng=0, draws=50)
    assert post.estimate("tv") < 1e-4


@pytest.mark.parametrize("doublings", [26, 28])  # 0.7 and 2.7 billion rows of both sets
def test_billions_of_rows(doublings):
    """Evidence of so many rows does not fit into an exponent of 32 bits."""
    grid = Grid.from_bounds(["v"], (0, 1))
    apart = [
        Sketch.of(np.linspace(*ends, 5)[:, None], grid=grid) for ends in ((0, 0.4), (0.6, 0.99))
    ]
    for _ in range(doublings):
        apart = [one + one for one in apart]
    post = cobpm.compare(*apart, rng=1, draws=200)
    assert post.model.sizes == (5 * 2**doublings,) * 2
    assert post.estimate("tv") > 0.99
    assert post.same_probability() < 1e-6

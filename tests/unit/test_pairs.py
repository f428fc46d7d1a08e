"""pairwise(): one posterior for all pairs, or one for each."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import cobpm
from cobpm import pair_runs
from cobpm.pairs import affinity

RNG = np.random.default_rng(20)
SETS = {
    "a": RNG.normal(0.0, 1.0, (120, 2)),
    "b": RNG.normal(0.0, 1.0, (150, 2)),
    "c": RNG.normal(1.5, 1.0, (90, 2)),
    "d": RNG.normal(0.0, 2.5, (200, 2)),
}
MANY = {f"s{k}": RNG.normal(k % 3, 1.0, (40, 2)) for k in range(13)}
PERMUTED = ["c", "a", "d", "b"]


@pytest.mark.parametrize("name", ["kl", "renyi:0.5", "tv", "renyi:2"])
@pytest.mark.parametrize("read_out", ["mean", "median", "plug"])
def test_joint_with_two_sets_is_compare(name, read_out):
    pairs = cobpm.pairwise(
        [SETS["a"], SETS["c"]], name, rng=3, draws=300, read_out=read_out, model="paper"
    )
    post = cobpm.compare(SETS["a"], SETS["c"], rng=3, draws=300, model="paper")
    for i, j, first, second in ((0, 1, "x", "y"), (1, 0, "y", "x")):
        assert pairs.matrix[i, j] == pytest.approx(
            post.estimate(name, first, second, read_out=read_out), rel=1e-12
        )
        low, high = post.interval(name, 0.9, first, second)
        assert pairs.low[i, j] == pytest.approx(low, rel=1e-9)
        assert pairs.high[i, j] == pytest.approx(high, rel=1e-9)
        np.testing.assert_array_equal(pairs.draws(i, j), post.draws(name, first, second))


@pytest.mark.parametrize("sets", [SETS, MANY], ids=["few", "many"])
@pytest.mark.parametrize("read_out", ["mean", "median", "plug"])
def test_joint_is_fit_read_pair_by_pair(sets, read_out):
    pairs = cobpm.pairwise(sets, "kl", rng=5, draws=200, read_out=read_out, model="paper")
    post = cobpm.fit(sets, rng=5, draws=200, model="paper")
    for i, first in enumerate(sets):
        for j, second in enumerate(sets):
            if i == j:
                continue
            drawn = post.draws("kl", first, second)
            np.testing.assert_allclose(
                [pairs.low[i, j], pairs.high[i, j]], np.quantile(drawn, [0.05, 0.95]), rtol=1e-9
            )
            expected = post.estimate("kl", first, second, read_out=read_out)
            if read_out == "mean" and len(sets) > 10:  # no closed form for so many
                expected = drawn.mean()
            assert pairs.matrix[i, j] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("partition", ["joint", "pair"])
def test_permuting_the_sets_permutes_the_matrix(partition):
    order = [list(SETS).index(name) for name in PERMUTED]
    settings = {"partition": partition, "rng": 1, "draws": 200}
    # Exact means need no draws, so they must agree to rounding.
    one = cobpm.pairwise(SETS, "kl", **settings, model="paper")
    other = cobpm.pairwise({name: SETS[name] for name in PERMUTED}, "kl", **settings, model="paper")
    np.testing.assert_allclose(other.matrix, one.matrix[np.ix_(order, order)], rtol=1e-9)
    assert other.names == tuple(PERMUTED)
    if partition == "pair":  # a pair's seed comes from its data: draws agree as well
        np.testing.assert_array_equal(other.low, one.low[np.ix_(order, order)])
        np.testing.assert_array_equal(other.draws("c", "b"), one.draws("c", "b"))
    else:
        drawn, again = one.draws("c", "d"), other.draws("c", "d")
        error = (drawn.var() / len(drawn) + again.var() / len(again)) ** 0.5
        assert drawn.mean() == pytest.approx(again.mean(), abs=4 * error)


def test_each_pair_is_compare():
    pairs = cobpm.pairwise(SETS, "kl", partition="pair", rng=2, draws=100, model="paper")
    for i, first in enumerate(SETS):
        for j, second in enumerate(SETS):
            if i != j:
                post = cobpm.compare(SETS[first], SETS[second], draws=10, rng=0, model="paper")
                assert pairs.matrix[i, j] == pytest.approx(post.estimate("kl"), rel=1e-9)
    drawn = pairs.draws("a", "c")
    assert pairs.low[0, 2] == pytest.approx(np.quantile(drawn, 0.05), rel=1e-12)
    assert pairs.posterior("a", "c").draws("kl", "a", "c").tolist() == drawn.tolist()
    assert set(pairs.posterior("a", "c").names) == {"a", "c"}


def test_a_pair_does_not_depend_on_the_other_sets():
    settings = {"partition": "pair", "rng": 9, "draws": 100}
    all_four = cobpm.pairwise(SETS, **settings, model="paper")
    two = cobpm.pairwise({"d": SETS["d"], "b": SETS["b"]}, **settings, model="paper")
    assert two.matrix[0, 1] == all_four.matrix[3, 1]
    assert two.high[1, 0] == all_four.high[1, 3]


@pytest.mark.parametrize("partition", ["joint", "pair"])
@pytest.mark.parametrize("name", ["kl", "renyi:0.5", "chi2"])
def test_symmetric_zero_diagonal_never_negative(partition, name):
    settings = {"partition": partition, "rng": 1, "draws": 100, "read_out": "median"}
    pairs = cobpm.pairwise(SETS, name, symmetric=True, **settings, model="paper")
    one_way = cobpm.pairwise(SETS, name, **settings, model="paper")
    assert pairs.symmetric
    assert one_way.symmetric == (name == "renyi:0.5")
    for table in (pairs.matrix, pairs.low, pairs.high):
        np.testing.assert_array_equal(table, table.T)
        np.testing.assert_array_equal(np.diag(table), 0.0)
        assert (table >= 0).all()
    assert (pairs.low <= pairs.matrix).all()
    assert (pairs.matrix <= pairs.high).all()
    there, back = one_way.draws("a", "c"), one_way.draws("c", "a")
    np.testing.assert_allclose(pairs.draws("c", "a"), (there + back) / 2, rtol=1e-9)
    assert pairs.matrix[0, 2] == pytest.approx(np.median((there + back) / 2), rel=1e-9)


def test_merging_two_sets_adds_their_counts():
    merged = {"a+b": np.vstack([SETS["a"], SETS["b"]]), "c": SETS["c"], "d": SETS["d"]}
    post = cobpm.fit(SETS, rng=1, draws=50, model="paper")
    counts = post.partitions.counts
    together = np.column_stack([counts[:, 0] + counts[:, 1], counts[:, 2], counts[:, 3]])
    found = np.column_stack([post.counts_of(values) for values in merged.values()])
    np.testing.assert_array_equal(found, together)
    # Copies of a set at other places of the list change nothing for the pair.
    settings = {"partition": "pair", "rng": 4, "draws": 50}
    one = cobpm.pairwise({**merged, "copy": merged["c"].copy()}, **settings, model="paper")
    assert one.matrix[0, 1] == one.matrix[0, 3]
    assert one.matrix[0, 1] == cobpm.pairwise(merged, **settings, model="paper").matrix[0, 1]


def test_threads_do_not_matter(monkeypatch):
    results = []
    for threads in "13":
        monkeypatch.setenv("COBPM_THREADS", threads)
        for partition in ("joint", "pair"):
            results.append(
                cobpm.pairwise(SETS, partition=partition, rng=1, draws=100, model="paper")
            )
    for one, other in (results[::2], results[1::2]):
        np.testing.assert_array_equal(one.matrix, other.matrix)
        np.testing.assert_array_equal(one.high, other.high)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_groups_of_a_data_frame(make):
    rows = np.vstack(list(SETS.values()))
    labels = np.repeat(list(SETS), [len(values) for values in SETS.values()])
    shuffled = np.random.default_rng(0).permutation(len(rows))
    frame = make({"u": rows[shuffled, 0], "v": rows[shuffled, 1], "set": labels[shuffled]})
    expected = cobpm.pairwise(SETS, "kl", rng=1, draws=50, model="paper").matrix
    found = cobpm.pairwise(frame, "kl", groups="set", rng=1, draws=50, model="paper")
    assert found.names == ("a", "b", "c", "d")
    np.testing.assert_allclose(found.matrix, expected, rtol=1e-9)
    assert found.posterior(0, 1).columns == ("u", "v")
    apart = cobpm.pairwise(
        rows[shuffled], "kl", groups=labels[shuffled], rng=1, draws=50, model="paper"
    )
    np.testing.assert_allclose(apart.matrix, expected, rtol=1e-9)


def test_groups_keep_the_order_of_numbers():
    values, years = np.arange(60.0), np.repeat([2009, 2010, 998], 20)
    assert cobpm.pairwise(values, groups=years, draws=10, rng=0, model="paper").names == (
        "998",
        "2009",
        "2010",
    )


def test_tables():
    pairs = cobpm.pairwise(SETS, "kl", rng=1, draws=50, model="paper")
    square = pairs.to_frame()
    assert square.loc["a", "c"] == pairs.matrix[0, 2]
    tidy = pairs.to_frame(tidy=True)
    assert len(tidy) == 12
    row = tidy[(tidy["first"] == "c") & (tidy["second"] == "b")].iloc[0]
    assert (row["estimate"], row["low"], row["high"]) == (
        pairs.matrix[2, 1],
        pairs.low[2, 1],
        pairs.high[2, 1],
    )
    assert len(cobpm.pairwise(SETS, "tv", rng=1, draws=50, model="paper").to_frame(tidy=True)) == 6
    assert "4 sets over one shared partition" in repr(pairs)


def test_affinity():
    pairs = cobpm.pairwise(SETS, "renyi:0.5", rng=1, draws=50, model="paper")
    # With scale 2 it is the Bhattacharyya coefficient: e^(−D/2) = ∫√(pq).
    np.testing.assert_allclose(pairs.affinity(2.0), np.exp(-pairs.matrix / 2))
    middle = np.median(pairs.matrix[~np.eye(4, dtype=bool)])
    np.testing.assert_allclose(pairs.affinity(), np.exp(-pairs.matrix / middle))
    distances = cobpm.pairwise(SETS, "tv", rng=1, draws=50, model="paper")
    np.testing.assert_allclose(distances.affinity(0.1), np.exp(-(distances.matrix**2) / 0.1))
    one_way = cobpm.pairwise(SETS, "kl", rng=1, draws=50, model="paper").affinity("local")
    np.testing.assert_array_equal(one_way, one_way.T)
    assert ((one_way > 0) & (one_way <= 1)).all()
    np.testing.assert_array_equal(np.diag(one_way), 1.0)
    alike = np.zeros((10, 10))  # nine that coincide, and one apart
    alike[9, :9] = alike[:9, 9] = 1.0
    found = affinity(alike, "local")
    assert found[0, 1] == 1.0
    assert found[0, 9] == 0.0
    with pytest.raises(cobpm.InputError, match="'scale' parameter of affinity"):
        pairs.affinity("mean")
    with pytest.raises(cobpm.InputError, match="positive number"):
        pairs.affinity(-1.0)


def test_sets_are_called_by_name_or_number():
    pairs = cobpm.pairwise({"1": SETS["a"], "0": SETS["c"]}, "kl", rng=1, draws=20, model="paper")
    np.testing.assert_array_equal(pairs.draws("1", "0"), pairs.draws(0, 1))
    for wrong in (2, -1, "x", True, None, 0.5):
        with pytest.raises(cobpm.InputError, match="'first' parameter of draws"):
            pairs.draws(wrong, 1)
    with pytest.raises(cobpm.InputError, match="another set than the first"):
        pairs.draws("0", 1)


def test_new_sets_against_old_ones():
    from cobpm.divergences import parse
    from cobpm.pairs import Question, against
    from cobpm.samples import as_samples

    post = cobpm.fit(SETS, rng=1, draws=400, model="paper")
    question = Question(parse("kl", "test"), 0.9, "plug", False)
    again = as_samples(SETS, owner="test")
    # With the same points the new sets are the old ones: their mean masses agree exactly.
    found = against(post, question, again, seed=0)[0]
    expected = cobpm.pairwise(SETS, "kl", rng=1, draws=400, read_out="plug", model="paper").matrix
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    far = as_samples([np.full((30, 2), 99.0), SETS["c"]], owner="test")
    mean = Question(parse("kl", "test"), 0.9, "mean", False)
    estimate, low, high = against(post, mean, far, seed=0)
    assert ((low <= estimate) & (estimate <= high)).all()
    assert estimate[1].argmin() == 2
    assert (estimate[0] > estimate[1]).all()  # it fell into the cell at the corner
    # A set and a copy of it have independent masses: close, not equal.
    assert 0 < estimate[1, 2] < estimate[1, 0]


# --- the file that a run can be continued from ---------------------------------------------------


def counted(monkeypatch):
    """How many pairs were worked out, as a list that grows."""
    worked = []
    original = pair_runs.Pairs.answer
    monkeypatch.setattr(
        pair_runs.Pairs,
        "answer",
        lambda self, i, j, progress: worked.append((i, j)) or original(self, i, j, progress),
    )
    return worked


def test_a_run_is_continued_from_its_file(tmp_path, monkeypatch):
    file = tmp_path / "pairs.jsonl"
    settings = {"partition": "pair", "draws": 50, "rng": 7}
    expected = cobpm.pairwise(SETS, "kl", **settings, model="paper")
    worked = counted(monkeypatch)
    three = {name: SETS[name] for name in "abc"}
    cobpm.pairwise(three, "kl", checkpoint=file, **settings, model="paper")
    assert len(worked) == 3
    found = cobpm.pairwise(SETS, "kl", checkpoint=str(file), **settings, model="paper")
    assert len(worked) == 6  # a set more: three pairs more
    for table in ("matrix", "low", "high"):
        np.testing.assert_array_equal(getattr(found, table), getattr(expected, table))
    cobpm.pairwise(dict(reversed(SETS.items())), "kl", checkpoint=file, **settings, model="paper")
    assert len(worked) == 6

    # A crash in the middle of a line costs that pair and no other.
    text = file.read_text()
    file.write_text(text[:-20])
    again = cobpm.pairwise(SETS, "kl", checkpoint=file, **settings, model="paper")
    assert len(worked) == 7
    np.testing.assert_array_equal(again.matrix, expected.matrix)
    assert sorted(file.read_text().splitlines()) == sorted(text.splitlines())


def test_without_a_seed_the_file_has_it(tmp_path):
    file = tmp_path / "pairs.jsonl"
    one = cobpm.pairwise(SETS, partition="pair", draws=20, checkpoint=file, model="paper")
    other = cobpm.pairwise(SETS, partition="pair", draws=20, checkpoint=file, model="paper")
    np.testing.assert_array_equal(one.matrix, other.matrix)
    np.testing.assert_array_equal(one.draws("a", "b"), other.draws("a", "b"))


def test_a_file_of_another_question_is_refused(tmp_path):
    file = tmp_path / "pairs.jsonl"
    settings = {"partition": "pair", "draws": 20, "rng": 1, "checkpoint": file}
    cobpm.pairwise(SETS, "kl", bounds=[(-20, 20), (-20, 20)], **settings, model="paper")
    kept = file.read_text()
    with pytest.raises(cobpm.InputError, match=r"divergence='kl' in the file and 'tv' here"):
        cobpm.pairwise(SETS, "tv", bounds=[(-20, 20), (-20, 20)], **settings, model="paper")
    with pytest.raises(cobpm.InputError, match=r"bounds=.* in the file and None here"):
        cobpm.pairwise(SETS, "kl", **settings, model="paper")
    with pytest.raises(cobpm.InputError, match=r"seed 1 in the file and 2 here"):
        cobpm.pairwise(
            SETS, "kl", bounds=((-20, 20), (-20, 20)), **settings | {"rng": 2}, model="paper"
        )
    assert file.read_text() == kept
    (tmp_path / "notes.txt").write_text("my notes\n")
    with pytest.raises(cobpm.InputError, match="holds something else"):
        cobpm.pairwise(
            SETS, "kl", **settings | {"checkpoint": tmp_path / "notes.txt"}, model="paper"
        )
    assert (tmp_path / "notes.txt").read_text() == "my notes\n"
    for path, match in (
        (tmp_path, "the folder"),
        (tmp_path / "none" / "f", "folder that exists"),
        (3, "path of a file"),
    ):
        with pytest.raises(cobpm.InputError, match=match):
            cobpm.pairwise(SETS, "kl", **settings | {"checkpoint": path}, model="paper")
    with pytest.raises(cobpm.InputError, match="divergence that has a name"):
        cobpm.pairwise(
            SETS,
            lambda t: t * np.log(t),
            **settings | {"checkpoint": tmp_path / "g"},
            model="paper",
        )
    with pytest.raises(cobpm.InputError, match="partition='pair'"):
        cobpm.pairwise(SETS, "kl", draws=20, checkpoint=file, model="paper")


def test_a_warning_speaks_for_all_pairs():
    settings = {"engine": "mcmc", "kernel": "guided", "draws": 40, "burn_in": 0, "rng": 1}
    with pytest.warns(cobpm.diagnostics.ConvergenceWarning) as caught:
        pairs = cobpm.pairwise(SETS, partition="pair", **settings, model="paper")
    assert len(caught) == 1
    assert "6 of 6 pairs need care. The first, 'a' and 'b'" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert pairs.warnings == (str(caught[0].message),)
    with pytest.warns(cobpm.diagnostics.ConvergenceWarning) as caught:
        cobpm.pairwise(SETS, **settings, model="paper")
    assert caught[0].filename == __file__

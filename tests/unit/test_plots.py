"""Pictures: each draws something sensible, on the axes given, whatever the data are called."""

import sys

import numpy as np
import pandas as pd
import pytest

import cobpm
from cobpm.plots import style
from cobpm.samples import InputError

plt = pytest.importorskip("matplotlib.pyplot")
plt.switch_backend("agg")

KINDS = ("divergences", "leaves", "regions", "map", "ratio", "column")  # those with one axes


@pytest.fixture(autouse=True)
def closed_figures():
    plt.close("all")  # those of other tests, too
    yield
    plt.close("all")


def samples(d, n=120):
    rng = np.random.default_rng(d)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(n + 30, d))
    y[:, 0] += 0.8
    return x, y


@pytest.fixture(scope="module", params=[1, 2, 3, 12])
def post(request):
    return cobpm.compare(*samples(request.param), rng=0, draws=300)


@pytest.fixture(scope="module")
def plane():
    return cobpm.compare(*samples(2), rng=0, draws=300)


def drawn(figure):
    figure.set_dpi(40)  # quicker
    figure.canvas.draw()
    return figure


def texts(figure):
    """All that is written in a figure."""
    from matplotlib.text import Text

    drawn(figure)
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


@pytest.mark.parametrize("kind", KINDS)
def test_each_picture_makes_its_own_figure_and_returns_the_axes(post, kind):
    before = len(plt.get_fignums())  # other tests may have left some
    ax = getattr(post.plot, kind)()
    assert isinstance(ax, plt.Axes)
    assert ax.has_data()
    drawn(ax.figure)
    assert len(plt.get_fignums()) == before + 1


@pytest.mark.parametrize("kind", KINDS)
def test_each_picture_draws_on_the_axes_given(post, kind):
    figure, (left, right) = plt.subplots(1, 2)
    assert getattr(post.plot, kind)(ax=right) is right
    assert right.has_data()
    assert not left.has_data()
    assert plt.get_fignums() == [figure.number]


def test_the_overview_shows_how_much_and_where(post):
    axes = post.plot()
    d = len(post.columns)
    assert [name for name in axes if not name.startswith("column ")] == ["divergences", "where"]
    assert len(axes) == 2 + min(d, 4)
    assert "column c1" in axes  # the one that differs
    (figure,) = {ax.figure for ax in axes.values()}
    words = " ".join(texts(figure))
    assert "x (120 points) and y (150 points)" in words
    assert "that they are the same" in words


def test_columns_are_drawn_side_by_side(post):
    axes = post.plot.columns()
    assert len(axes) == min(12, len(post.columns))
    assert axes[0].get_xlabel() == "c1"
    assert all(ax.has_data() for ax in axes)
    drawn(axes[0].figure)


def test_columns_take_axes_and_names():
    post = cobpm.compare(*samples(3), rng=0, draws=100)
    _, grid = plt.subplots(2, 2)
    found = post.plot.columns(["c3", "c1"], ax=grid)
    assert [ax.get_xlabel() for ax in found] == ["c3", "c1"]
    assert found[0] is grid[0, 0]
    _, single = plt.subplots()
    assert list(post.plot.columns(ax=single)) == [single]
    with pytest.raises(InputError, match="as many axes as columns"):
        post.plot.columns(["c1", "c2"], ax=single)
    with pytest.raises(InputError, match="list of column names"):
        post.plot.columns("c1")
    with pytest.raises(InputError, match="'c9'"):
        post.plot.column("c9")


def test_divergences_are_read_off_the_posterior(plane):
    ax = plane.plot.divergences(["kl", "tv"], level=0.8)
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "Kullback-Leibler",
        "total variation",
    ]
    bars = [line.get_xdata() for line in ax.get_lines() if len(line.get_xdata()) == 2]
    bars = [bar for bar in bars if bar[1] > 0]  # without the posts at zero
    np.testing.assert_allclose(bars, [plane.interval(name, 0.8) for name in ("kl", "tv")])
    assert any(f"{np.median(plane.draws('tv')):.2f} " in text for text in texts(ax.figure))
    assert plane.plot.divergences(lambda t: (t - 1) ** 2).has_data()


def test_the_number_of_leaves_is_that_of_the_draws(plane):
    ax = plane.plot.leaves()
    (bars,) = ax.patches
    values, edges, _ = bars.get_data()
    assert values.sum() == pytest.approx(100)
    expected, _ = np.histogram(plane.leaves, edges)
    np.testing.assert_allclose(values, 100 * expected / len(plane.leaves))
    assert f"mean {plane.leaves.mean():.1f}" in texts(ax.figure)


def test_the_map_has_zero_in_the_middle_of_its_colours(plane):
    ax = plane.plot.map(["c2", "c1"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("c2", "c1")
    (mesh,) = [
        found for found in ax.collections if found.get_array() is not None and found.cmap.name
    ]
    low, high = mesh.get_clim()
    assert low == -high < 0
    assert "density, x : y" in texts(ax.figure)
    plain = plane.plot.map(points=False, leaves=False)
    assert len(plain.collections) == 1


def test_colours_are_those_of_the_denser_set():
    rng = np.random.default_rng(0)
    post = cobpm.compare(rng.uniform(0, 0.5, 400), rng.uniform(0.5, 1, 400), rng=0)
    ax = post.plot.ratio()
    first, second = style.set_colours(ax)
    by_colour = {patch.get_facecolor()[:3]: patch for patch in ax.patches}
    for colour, sign in ((first, 1), (second, -1)):
        values = by_colour[style.mixed(ax, colour, 0.6)].get_data().values
        assert (np.sign(values[~np.isnan(values)]) == sign).all()
        assert (~np.isnan(values)).any()


HOSTILE = ("$x_1$", "_hidden", "[a]", r"\frac{1}{$", "", "50%", "two\nlines", "n" * 200)


def test_any_name_can_be_printed():
    rng = np.random.default_rng(0)
    tables = [pd.DataFrame(rng.normal(k, 1, (60, len(HOSTILE))), columns=HOSTILE) for k in (0, 1)]
    post = cobpm.fit({"$a$ and $b$": tables[0], "_second": tables[1]}, rng=0, draws=100)
    drawn(post.plot.regions().figure)
    axes = post.plot.columns()
    drawn(axes[0].figure)
    labels = [ax.get_xlabel() for ax in axes]
    assert r"\$x_1\$" in labels  # printed as $x_1$
    assert max(map(len, labels)) <= 30
    legend = axes[0].figure.legends[0]
    assert [text.get_text().strip() for text in legend.get_texts()] == [
        r"\$a\$ and \$b\$",
        "_second",
    ]
    drawn(post.plot()["where"].figure)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1.0], [2.0]),
        (np.zeros(5), np.zeros(6)),
        ([1e308, -1e308, 3.0], [0.0, 1e308]),
        ([1e16, 1e16 + 2, 1e16 + 4], [1e16, 1e16 + 2]),
        ([5e-324, 0.0], [0.0, 1e-323]),
        (np.append(np.linspace(-1, 1, 9), 1e12), np.linspace(-1, 1, 10)),
        ([0.0] * 90 + [1.5, 2.5], [0.0] * 80 + [1.25]),
        (np.zeros((4, 2)), np.zeros((4, 2))),
        (
            np.column_stack([np.arange(9), np.zeros(9)]),
            np.column_stack([np.arange(5), np.zeros(5)]),
        ),
    ],
)
def test_any_data_make_a_picture(x, y):
    post = cobpm.compare(x, y, rng=0, draws=100)
    drawn(post.plot()["where"].figure)
    for kind in ("leaves", "regions"):  # the others are in the overview
        drawn(getattr(post.plot, kind)().figure)


def test_dates_are_printed_as_dates():
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + rng.integers(0, 300, 200).astype("timedelta64[D]")
    x = pd.DataFrame({"when": days, "what": rng.normal(size=200)})
    y = x.assign(when=x["when"] + pd.Timedelta(days=60))
    post = cobpm.compare(x, y, rng=0, draws=100)
    for ax in (post.plot.column("when"), post.plot.ratio("when"), post.plot.map(["when", "what"])):
        assert {"Apr", "Jul"} <= set(texts(ax.figure))
    assert any("2024-" in text for text in texts(post.plot.regions().figure))


def test_a_loaded_posterior_draws_what_it_can(plane, tmp_path):
    plane.save(tmp_path / "post.npz")
    loaded = cobpm.load(tmp_path / "post.npz")
    for kind in ("divergences", "leaves", "regions"):
        assert getattr(loaded.plot, kind)().has_data()
    assert list(loaded.plot()) == ["divergences", "where"]
    for kind in ("map", "ratio", "column", "columns"):
        with pytest.raises(InputError, match="Give them again"):
            getattr(loaded.plot, kind)()
    with_points = loaded.plot(samples=samples(2))
    assert "column c2" in with_points
    assert loaded.plot.map(samples=samples(2)).has_data()


def test_two_of_many_sets_are_named():
    rng = np.random.default_rng(0)
    post = cobpm.fit({name: rng.normal(k, 1, (80, 2)) for k, name in enumerate("abc")}, rng=0)
    axes = post.plot("c", "a")
    assert "c (80 points) and a (80 points)" in texts(axes["where"].figure)
    assert post.plot.leaves().has_data()
    with pytest.raises(InputError, match="name one of the sets"):
        post.plot()


def test_a_single_set_has_leaves_only():
    post = cobpm.fit([np.random.default_rng(0).normal(size=100)], rng=0, draws=100)
    assert post.plot.leaves().has_data()
    with pytest.raises(InputError, match="single set"):
        post.plot()


def test_the_papers_model_makes_pictures():
    post = cobpm.compare(*samples(2), rng=0, draws=100, model="paper")
    for kind in KINDS:
        assert getattr(post.plot, kind)().has_data()
    drawn(post.plot()["where"].figure)


def test_settings_stay_as_they_are_and_colours_go_with_the_background(plane):
    with plt.style.context("dark_background"):
        before = dict(plt.rcParams)
        ax = plane.plot()["where"]
        drawn(ax.figure)
        assert dict(plt.rcParams) == before
        assert style.is_dark(ax)
        assert style.set_colours(ax) == style.ON_DARK
    before = dict(plt.rcParams)
    light = plane.plot.map()
    assert style.set_colours(light) == style.ON_LIGHT
    assert dict(plt.rcParams) == before
    figure, clear = plt.subplots()
    clear.set_facecolor("none")
    figure.set_facecolor("black")
    assert style.is_dark(clear)


def test_ticks_of_ratios_are_ratios():
    at, labels = style.ratio_ticks(-2.4, 2.4)
    assert labels == ["1 : 8", "1 : 4", "1 : 2", "1 : 1", "2 : 1", "4 : 1", "8 : 1"]
    np.testing.assert_allclose(at, np.log([1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8]))
    for largest in (0.03, 0.1, 0.5, 1, 2, 3, 4, 6.9):
        at, labels = style.ratio_ticks(-largest, largest)
        assert 3 <= len(at) == len(labels) <= 9
        assert max(at) <= largest


def test_without_matplotlib_the_extra_is_named(plane, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (plane.plot, plane.plot.leaves, plane.plot.map, plane.plot.columns):
        with pytest.raises(ImportError, match=r"pip install 'cobpm\[plot\]'"):
            draw()


def test_plot_says_what_there_is(plane):
    assert "plot.map()" in repr(plane.plot)
    assert "plot.columns()" in repr(plane.plot)

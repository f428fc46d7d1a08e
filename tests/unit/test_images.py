"""The experiment on images: features, dissimilarities, clusters, classes, and the page."""

import time
from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy import stats

from cobpm.baselines import knn_divergence
from cobpm.experiments import framework, image_features, image_methods, images, images_page
from cobpm.experiments.framework import Settings, Unavailable
from cobpm.experiments.image_features import SCENES, Patches, Pictures, descriptors, principal

SMALL = Patches("sift", 8, 12, 5)
TINY_PLAN = images.Plan(4, 6, 2, 6, 20, 6, 3, 3, 1)
SIDE = 48


def silent(stage, done):
    assert 0 <= done <= 1 + 1e-9


def picture(kind, seed):
    """Stripes of one of four directions with some noise."""
    y, x = np.mgrid[:SIDE, :SIDE]
    wave = np.sin(0.6 * (np.cos(kind * np.pi / 4) * x + np.sin(kind * np.pi / 4) * y) + seed)
    noise = np.random.default_rng([kind, seed]).normal(0, 12, (SIDE, SIDE))
    return np.clip(128 + 70 * wave + noise, 0, 255).astype(np.uint8)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COBPM_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "scenes"
    for kind, name in enumerate(SCENES):
        (root / name).mkdir(parents=True)
        for seed in range(8):
            cv2.imwrite(str(root / name / f"image_{seed:04}.png"), picture(kind, seed))
    return root


# --- reading -----------------------------------------------------------------------------------


def test_pictures_are_read_and_repeats_left_out(folder):
    copy = folder / "coast" / "image_9999.png"
    copy.write_bytes((folder / "coast" / "image_0003.png").read_bytes())
    (folder / "coast" / "notes.txt").write_text("no picture")
    found = image_features.scenes(folder)
    assert found.classes == SCENES
    assert found.left_out == ("coast/image_9999.png",)
    assert np.bincount(found.labels).tolist() == [8, 8, 8, 8]
    one = found.names.index("highway/image_0002.png")
    np.testing.assert_array_equal(found.images[one], picture(2, 2))


def test_folders_may_bear_the_names_of_the_data_set(folder):
    for name in SCENES:
        (folder / name).rename(folder / f"MIT{name}")
    (folder / "MITforest").mkdir()
    assert len(image_features.scenes(folder).names) == 32


def test_broken_picture_is_named(folder):
    (folder / "highway" / "image_0005.png").write_bytes(b"\x89PNG and then nothing")
    with pytest.raises(Unavailable, match=r"highway.image_0005.png' cannot be read"):
        image_features.scenes(folder)
    (folder / "highway" / "image_0005.png").write_bytes(b"")
    with pytest.raises(Unavailable, match=r"highway.image_0005.png' cannot be read"):
        image_features.scenes(folder)


def jpeg(kind=0):
    return cv2.imencode(".jpg", picture(kind, 0))[1].tobytes()


@pytest.mark.parametrize(
    ("suffix", "kept"),
    [*(("jpg", share) for share in (0.05, 0.3, 0.6, 0.999)), ("png", 0.3), ("png", 0.95)],
)
def test_pictures_that_are_cut_off_are_named(folder, monkeypatch, kept, suffix):
    """Even where OpenCV makes up the rest, as some versions do."""
    whole = cv2.imencode(f".{suffix}", picture(0, 0))[1].tobytes()
    (folder / "coast" / f"short.{suffix}").write_bytes(whole[: int(kept * len(whole))])
    monkeypatch.setattr(cv2, "imdecode", lambda content, flags: picture(0, 9))
    with pytest.raises(Unavailable, match=rf"coast.short.{suffix}' cannot be read: .*Mend it"):
        image_features.scenes(folder)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the file is empty"),
        (b"GIF87a, or so it says", "not a picture"),
        (b"<html>404</html>", "not a picture"),
        (jpeg()[100:], "not a picture, or has lost its beginning"),
    ],
)
def test_files_that_are_no_pictures_are_named(folder, content, why):
    (folder / "coast" / "odd.jpg").write_bytes(content)
    with pytest.raises(Unavailable, match=rf"coast.odd.jpg' cannot be read: .*{why}"):
        image_features.scenes(folder)


def test_folders_that_are_named_like_pictures_are_refused(folder):
    (folder / "coast" / "odd.jpg").mkdir()
    with pytest.raises(Unavailable, match=r"coast.odd.jpg' cannot be read: .*directory"):
        image_features.scenes(folder)


def test_colours_and_deep_greys_become_grey(folder):
    """Other kinds of pictures are no reason to stop; junk after a picture is none either."""
    grey = picture(1, 3)
    cv2.imwrite(str(folder / "coast" / "colour.png"), np.dstack([grey] * 3))
    cv2.imwrite(str(folder / "coast" / "deep.png"), picture(1, 4).astype(np.uint16) * 256)
    (folder / "coast" / "junk.jpg").write_bytes(jpeg() + b"added by a camera")
    found = image_features.scenes(folder)
    np.testing.assert_array_equal(found.images[found.names.index("coast/deep.png")], picture(1, 4))
    assert found.images[found.names.index("coast/colour.png")].shape == (SIDE, SIDE)
    assert abs(found.images[found.names.index("coast/colour.png")].astype(int) - grey).max() <= 1
    assert "coast/junk.jpg" in found.names


def test_missing_classes_are_named(folder):
    (folder / "mountain").rename(folder / "hills")
    (folder / "coast").rename(folder / "shore")
    with pytest.raises(Unavailable, match="no folder 'mountain', 'coast'"):
        image_features.scenes(folder)


def test_too_few_pictures(folder, monkeypatch):
    monkeypatch.setattr(images, "QUICK_PLAN", replace(TINY_PLAN, train=9))
    with pytest.raises(Unavailable, match=r"class 'mountain': 8 different ones.*takes 9"):
        images.prepare(Settings(quick=True, data=folder))
    monkeypatch.setattr(images, "QUICK_PLAN", replace(TINY_PLAN, train=8, test=1))
    with pytest.raises(Unavailable, match="takes 8 of each class and 1 more"):
        images.prepare(Settings(quick=True, data=folder))


def test_textures_are_all_there():
    found = image_features.textures(64)
    assert np.bincount(found.labels).tolist() == [64, 64, 64]
    assert {image.shape for image in found.images} == {(64, 64)}
    assert found.left_out == ()


# --- patches -----------------------------------------------------------------------------------


def test_centres_of_the_grid():
    found = image_features.grid_centres((21, 41), Patches("sift", 4, 10, 3))
    # The largest patches reach 5 pixels to each side: x in 5 … 35, y in 5 … 15, row by row.
    expected = [(x, y) for y in (5, 10, 15) for x in (5, 20, 35)]
    np.testing.assert_allclose(found, expected)


def test_papers_grid_has_1600_patches():
    found = image_features.grid_centres((256, 256), images.MAIN_PATCHES)
    assert found.shape == (1600, 2)
    assert found.min() == 15
    assert found.max() == 240


def test_widths_are_random_and_repeatable():
    wide = Patches("sift", 10, 30, 30)
    found = image_features.widths(picture(0, 1), wide)
    assert 10 <= found.min() < 10.5
    assert 29.5 < found.max() <= 30
    np.testing.assert_array_equal(found, image_features.widths(picture(0, 1), wide))
    assert not np.array_equal(found, image_features.widths(picture(0, 2), wide))


def test_sift_sees_a_patch_of_the_width_asked_for():
    """What changes far outside the patch has no part in its vector, what changes inside has."""
    one = Patches("sift", 12, 12, 1)
    image = picture(1, 0)
    centre = image_features.grid_centres(image.shape, one)[0]
    before = image_features.describe(image, one)
    for reach, same in ((14, True), (4, False)):
        changed = image.copy()
        y, x = np.mgrid[:SIDE, :SIDE]
        outside = np.maximum(abs(x - centre[0]), abs(y - centre[1])) > reach
        changed[outside] = 255 - changed[outside]
        assert np.array_equal(image_features.describe(changed, one), before) == same


def test_sift_of_an_edge_points_across_it():
    """A step from dark to light along x has gradients of the first orientation only."""
    image = np.zeros((40, 40), dtype=np.uint8)
    image[:, 20:] = 200
    found = image_features.describe(image, Patches("sift", 16, 16, 2)).astype(float)
    by_direction = found.reshape(-1, 16, 8).sum(axis=(0, 1))
    assert by_direction[0] > 0.95 * by_direction.sum()


def test_flat_patches_are_short():
    image = picture(0, 0) // 16  # a sixteenth of the contrast
    full, short = (
        image_features.describe(image, Patches(kind, 12, 12, 4)).astype(float)
        for kind in ("sift", "sift-flat")
    )
    contrast = image_features._contrast(
        image, image_features.grid_centres(image.shape, Patches("sift", 12, 12, 4)), np.full(16, 12)
    )
    assert contrast.max() < image_features.FLAT
    expected = full * (contrast / image_features.FLAT)[:, None]
    np.testing.assert_allclose(short, expected, atol=0.51)


def test_contrast_is_the_mean_gradient():
    image = picture(2, 1)
    down, across = np.gradient(image.astype(float))
    found = image_features._contrast(image, np.array([[20.0, 15.0]]), np.array([8.0]))
    assert found[0] == pytest.approx(np.hypot(down, across)[11:20, 16:25].mean())


def test_grey_values_are_normalised():
    bright = image_features.describe(picture(3, 0), Patches("grey", 11, 11, 3))
    assert bright.shape == (9, 121)
    np.testing.assert_allclose(bright.mean(axis=1), 128, atol=0.6)
    np.testing.assert_allclose(bright.std(axis=1), 32, atol=0.6)
    darker = image_features.describe(picture(3, 0) // 2, Patches("grey", 11, 11, 3))
    assert abs(bright.astype(int) - darker).max() <= 3  # rounding of the darker picture


def test_grey_values_are_those_of_the_pixels():
    image = picture(1, 3)
    patches = Patches("grey", 10, 10, 2)
    found = image_features.describe(image, patches)[0].astype(float)
    assert image_features.grid_centres(image.shape, patches)[0].tolist() == [5, 5]
    expected = image[0:11, 0:11].astype(float).ravel()
    expected = 128 + 32 * (expected - expected.mean()) / expected.std()
    np.testing.assert_allclose(found, np.clip(expected, 0, 255), atol=0.51)


# --- the cache ---------------------------------------------------------------------------------


def some(count=4):
    every = tuple(picture(kind, 0) for kind in range(count))
    names = tuple(f"p{kind}" for kind in range(count))
    return Pictures(names, names, np.arange(count), every, ())


def test_vectors_are_kept_and_used_again(tmp_path, monkeypatch):
    cache = tmp_path / "deep" / "cache"
    first = descriptors(some(), SMALL, silent, cache)
    assert first.shape == (4, 25, 128)
    (kept,) = cache.iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(image_features, "describe", None)  # not to be called
        again = descriptors(some(), SMALL, silent, cache)
    np.testing.assert_array_equal(first, again)
    # Other pictures and other settings are other files.
    descriptors(some(3), SMALL, silent, cache)
    descriptors(some(), replace(SMALL, largest=13), silent, cache)
    assert len(list(cache.iterdir())) == 3
    # A damaged file is made anew.
    kept.write_bytes(kept.read_bytes()[:300])
    np.testing.assert_array_equal(first, descriptors(some(), SMALL, silent, cache))
    np.testing.assert_array_equal(first, np.load(kept))


def test_nothing_is_kept_of_work_that_failed(tmp_path, monkeypatch):
    def fail(image, patches):
        raise KeyboardInterrupt

    monkeypatch.setattr(image_features, "describe", fail)
    with pytest.raises(KeyboardInterrupt):
        descriptors(some(), SMALL, silent, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written_is_no_reason_to_stop(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    found = descriptors(some(), SMALL, silent, tmp_path / "file")
    assert found.shape == (4, 25, 128)
    assert "cannot keep the patches" in capsys.readouterr().err


def test_same_vectors_on_any_number_of_threads(monkeypatch):
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("COBPM_THREADS", threads)
        found.append(descriptors(some(), SMALL, silent))
    np.testing.assert_array_equal(*found)


def test_pictures_smaller_than_a_patch_are_named():
    with pytest.raises(Unavailable, match=r"'p0' is too small, 48 × 48 .* patches, 48 pixels"):
        descriptors(some(), replace(SMALL, largest=48), silent)


def test_pictures_are_measured_before_any_work(folder, monkeypatch):
    monkeypatch.setattr(images, "QUICK_PLAN", TINY_PLAN)
    small = folder / "highway" / "image_0004.png"
    cv2.imwrite(str(small), picture(2, 4)[:29])
    with pytest.raises(Unavailable, match=r"highway.image_0004.png' is too small, 48 × 29 pixels"):
        images.check(Settings(quick=True, data=folder))


def test_folder_of_the_cache(monkeypatch, tmp_path):
    assert image_features.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("COBPM_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert image_features.cache_folder() == tmp_path / "xdg" / "cobpm"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert image_features.cache_folder() == Path.home() / ".cache" / "cobpm"


# --- fewer dimensions --------------------------------------------------------------------------


def test_principal_components_are_those_of_the_svd():
    rng = np.random.default_rng(1)
    sets = [rng.integers(0, 256, (30, 6)) @ rng.integers(0, 3, (6, 9)) for _ in range(4)]
    found = principal(sets, 2)
    pooled = np.concatenate(sets).astype(float)
    _, lengths, directions = np.linalg.svd(pooled - pooled.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(found.mean, pooled.mean(axis=0))
    np.testing.assert_allclose(abs(np.sum(found.directions.T * directions[:2], axis=1)), 1)
    np.testing.assert_allclose(found.share, lengths[:2] ** 2 / (lengths**2).sum())
    for values in sets:
        expected = (values - pooled.mean(axis=0)) @ found.directions
        np.testing.assert_allclose(found(values), expected)


# --- dissimilarities ---------------------------------------------------------------------------


def test_neighbours_are_those_of_the_baseline():
    rng = np.random.default_rng(2)
    points = [rng.normal(shift, 1, (60 + 5 * n, 2)) for n, shift in enumerate((0, 3, 1, 0, 2))]
    points[3][:12] = points[3][0]  # ties, which need care
    found = image_methods.by_neighbours(points, 3, (1, 4))
    assert sorted(found) == [1, 4]
    for k, matrix in found.items():
        for i in range(5):
            for j in range(min(i, 3)):
                expected = knn_divergence(points[i], points[j], "renyi:0.5", k)
                if i < 3:
                    back = knn_divergence(points[j], points[i], "renyi:0.5", k)
                    expected = (expected + back) / 2
                assert matrix[i, j] == pytest.approx(max(0, expected), rel=1e-9)
                assert matrix[j, i] == matrix[i, j]
        assert (np.diag(matrix)[:3] == 0).all()
        assert np.isnan(matrix[3:, 3:]).all()


def test_neighbours_are_dropped_after_an_interrupt(monkeypatch):
    """The rows that wait, and what is left of those that do not."""
    points = list(np.random.default_rng(8).normal(size=(60, 20, 2)))
    looked_at = []

    def slow(*arguments):
        looked_at.append(1)
        time.sleep(0.05)
        return 1.0

    monkeypatch.setattr(image_methods, "_renyi", slow)
    monkeypatch.setenv("COBPM_THREADS", "2")
    with suppress(KeyboardInterrupt), image_methods.neighbours_beside(points, 60, (1,)):
        while len(looked_at) < 10:
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert len(looked_at) < 30  # of 60 in each of 60 rows


def test_neighbours_tell_how_far_they_are():
    points, told = list(np.random.default_rng(9).normal(size=(4, 20, 2))), []
    with image_methods.neighbours_beside(points, 3, (1, 2)) as tables:
        found = tables(lambda stage, done: told.append(done))
    assert told == [0.25, 0.5, 0.75, 1]
    np.testing.assert_equal(found, image_methods.by_neighbours(points, 3, (1, 2)))


def test_a_full_disk_under_the_cache_is_told(tmp_path, monkeypatch, capsys):
    def full(path, values):
        raise OSError("1228800 requested and 511984 written")  # as NumPy has it

    monkeypatch.setattr(np, "save", full)
    assert descriptors(some(), SMALL, silent, tmp_path).shape == (4, 25, 128)
    assert "cannot keep the patches: 1228800 requested" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_words_of_the_first_sets_serve_the_others():
    rng = np.random.default_rng(3)
    sets = [rng.integers(0, 100, (40, 4)).astype(np.uint8) + 100 * (n % 2) for n in range(6)]
    found = image_methods.by_words(sets, 4, 6, 2, np.random.default_rng(0))
    assert found.shape == (6, 6)
    same = [(0, 2), (1, 3), (4, 0), (5, 1)]
    other = [(0, 1), (2, 3), (4, 1), (5, 0)]
    assert max(found[pair] for pair in same) < min(found[pair] for pair in other)


# --- clusters and classes ----------------------------------------------------------------------


def test_cluster_accuracy_by_hand():
    labels = np.array([0, 0, 0, 1, 1, 2])
    found = np.array([5, 5, 5, 5, 1, 1])
    # Three of four, and one of two.
    assert image_methods.cluster_accuracy(found, labels) == pytest.approx((3 / 4 + 1 / 2) / 2)


@pytest.mark.parametrize("seed", range(4))
def test_matched_accuracy_is_the_best_of_all_permutations(seed):
    rng = np.random.default_rng(seed)
    labels, found = rng.integers(0, 4, 30), rng.integers(0, 4, 30)
    best = max(np.mean(np.array(order)[found] == labels) for order in permutations(range(4)))
    assert image_methods.matched_accuracy(found, labels) == pytest.approx(best)


def test_graph_of_neighbours():
    places = np.arange(30.0) ** 1.1
    matrix = abs(places[:, None] - places)
    found = image_methods.graph(matrix, "neighbours", squared=True)
    for i in range(30):
        for j in range(30):
            near = [
                set(sorted(set(range(30)) - {a}, key=lambda b: matrix[a, b])[:10]) for a in (i, j)
            ]
            assert found[i, j] == (i == j or j in near[0] or i in near[1])


@pytest.mark.parametrize("kind", image_methods.GRAPHS)
def test_clear_clusters_are_found(kind):
    rng = np.random.default_rng(4)
    labels = np.repeat(np.arange(3), 14)
    places = rng.normal(0, 1, (42, 2)) + 12 * np.array([[0, 0], [1, 0], [0, 1]])[labels]
    distances = np.linalg.norm(places[:, None] - places, axis=2)
    links = image_methods.graph(distances, kind, squared=False)
    found = image_methods.clusters(links, 3, 0)
    assert image_methods.cluster_accuracy(found, labels) == 1
    assert image_methods.matched_accuracy(found, labels) == 1


def test_votes_of_the_nearest():
    labels = np.array([0, 0, 1, 1, 2])
    rows = np.array([[5.0, 4, 1, 2, 3], [1, 5, 4, 2, 3], [2, 9, 8, 7, 1]])
    # 1 1 2 → 1;   0 1 2, a draw that the nearest decides → 0;   2 0 1 → 2.
    assert image_methods.classify(rows, labels, 3).tolist() == [1, 0, 2]


# --- all of it ---------------------------------------------------------------------------------


@pytest.fixture
def result(folder, monkeypatch):
    monkeypatch.setattr(images, "QUICK_PLAN", TINY_PLAN)
    patches = {"SIFT, 10 to 30 pixels": SMALL, "11 × 11 grey values": replace(SMALL, kind="grey")}
    monkeypatch.setattr(images, "MAIN_PATCHES", SMALL)
    monkeypatch.setattr(images, "VARIANTS", patches)
    return images.run(Settings(quick=True, data=folder), silent)


def test_scenes_from_beginning_to_end(result, folder, tmp_path):
    numbers = result.numbers
    assert set(numbers["scores"]) == set(images.METHODS)
    for scores in numbers["scores"].values():
        for values in (*scores["clusters"].values(), *scores["matched"].values()):
            assert len(values) == 2
            assert all(0.25 <= value <= 1 for value in values)
        assert len(scores["classes"]) == 2
    assert "paper 83.0%, 74.9%, 72.2%" in result.verdict
    settings = Settings(quick=True, data=folder)
    framework.write(images, result, tmp_path, settings, 1.0)
    page = (tmp_path / "images.md").read_text(encoding="utf-8")
    assert "`cobpm reproduce images --data DIR --quick`" in page
    assert str(folder) not in page
    assert "nan" not in page


def test_the_page_says_how_far_it_is_from_the_paper(result):
    numbers = result.numbers
    for name in ("cobpm", "pc10", "bow"):
        for graph in image_methods.GRAPHS:
            numbers["scores"][name]["clusters"][graph] = [0.60, 0.65, 0.67]
    numbers["scores"]["cobpm"]["clusters"]["local"] = [0.5, 0.71, 0.72]
    numbers["scores"]["cobpm"]["classes"] = [0.7, 0.8, 0.9]
    numbers["partitions"]["pair"]["clusters"] = dict.fromkeys(image_methods.GRAPHS, 0.6)
    for found in numbers["variants"].values():
        found["cobpm"]["clusters"] = {graph: [0.6] for graph in image_methods.GRAPHS}
    text = images_page.sections(numbers)[-1]
    assert "clustering co-BPM -18.0, PC-10 -9.9, bag of words -7.2; " in text
    assert "classification co-BPM +2.2." in text
    best = "the graph *Gaussian, own scale*, has 71.0%, below the paper's 83.0%. So nothing tried"
    assert best in text
    numbers["partitions"]["pair"]["clusters"]["median"] = 0.9
    text = images_page.sections(numbers)[-1]
    assert "*Gaussian, median scale*, in a single draw, has 90.0%, not below the paper's" in text
    assert "nothing tried" not in text


def test_draws_are_of_all_classes_and_do_not_overlap(folder, monkeypatch):
    monkeypatch.setattr(images, "QUICK_PLAN", TINY_PLAN)
    plan, pictures = images.prepare(Settings(quick=True, data=folder))
    drawn = images.draw(pictures, plan, np.random.default_rng(0))
    assert drawn.train == 16
    assert np.bincount(drawn.labels[:16]).tolist() == [4, 4, 4, 4]
    assert len(set(drawn.images.tolist())) == 16 + 6
    np.testing.assert_array_equal(drawn.labels, pictures.labels[drawn.images])


def test_t_tests_against_their_formulas():
    rng = np.random.default_rng(6)
    scores = {}
    for name in images.METHODS:
        scores[name] = images.Scores()
        scores[name].classes = rng.normal(0.7, 0.05, 8).tolist()
    scores["bow"].classes = (np.array(scores["cobpm"].classes) - 0.1).tolist()
    found = images.t_tests(scores, "classes")
    assert found["bow"]["paired"] is None  # a difference without a spread
    assert found["bow"]["difference"] == pytest.approx(0.1)
    gaps = np.array(scores["cobpm"].classes) - np.array(scores["pc1"].classes)
    t = gaps.mean() / (gaps.std(ddof=1) / np.sqrt(8))
    assert found["pc1"]["paired"] == pytest.approx(2 * stats.t.sf(abs(t), 7))


def test_welch_does_not_pool_variances():
    """By the formula of Welch and Satterthwaite."""
    rng = np.random.default_rng(10)
    scores = {name: images.Scores() for name in images.METHODS}
    for name, spread in zip(images.METHODS, (0.1, 0.01, 0.05, 0.02, 0.2), strict=True):
        scores[name].clusters[images.MAIN_GRAPH] = rng.normal(0.7, spread, 6).tolist()
    a, b = (np.array(scores[name].clusters[images.MAIN_GRAPH]) for name in ("cobpm", "pc10"))
    u, v = a.var(ddof=1) / 6, b.var(ddof=1) / 6
    t, freedom = (a.mean() - b.mean()) / np.sqrt(u + v), (u + v) ** 2 / ((u**2 + v**2) / 5)
    expected = 2 * stats.t.sf(abs(t), freedom)
    assert images.t_tests(scores, "clusters")["pc10"]["welch"] == pytest.approx(expected)


def test_directions_are_of_the_images_to_cluster_alone():
    rng = np.random.default_rng(11)
    vectors = rng.normal(100, [30, 20, 2, 1], (6, 50, 4)).astype(np.uint8)
    vectors[4:] = rng.normal(100, [1, 2, 20, 30], (2, 50, 4)).astype(np.uint8)
    drawn = images.Drawn(np.array([3, 1, 0, 2, 5, 4]), np.zeros(6, dtype=int), 4)
    points, share = images.project(vectors, drawn)
    expected = principal([vectors[one] for one in (3, 1, 0, 2)], 2)
    np.testing.assert_allclose(share, expected.share)
    np.testing.assert_allclose(points[4], expected(vectors[5]))
    assert points[0].std(axis=0).min() > 10


def test_distances_are_squared_and_divergences_are_not(monkeypatch):
    seen = {}

    def graph(matrix, kind, squared):
        seen[method, kind] = squared
        return np.ones_like(matrix)

    monkeypatch.setattr(image_methods, "graph", graph)
    monkeypatch.setattr(image_methods, "clusters", lambda *_: np.zeros(4, dtype=int))
    drawn = images.Drawn(np.arange(5), np.array([0, 0, 1, 1, 0]), 4)
    for method in images.METHODS:
        images.Scores().add(method, np.ones((5, 5)), drawn, 2, 0)
    expected = {(m, kind): m != "bow" for m in images.METHODS for kind in image_methods.GRAPHS}
    assert seen == expected


def test_embedding_keeps_euclidean_distances():
    places = np.random.default_rng(7).normal(0, 1, (9, 2)) * [3, 1]
    squared = np.sum((places[:, None] - places) ** 2, axis=2)
    found = images.embed(images.First(np.zeros(9, dtype=int), [], squared))["points"]
    again = np.sum((found[:, None] - found) ** 2, axis=2)
    np.testing.assert_allclose(again, squared, atol=1e-3)


def test_doubts_of_the_engine_are_told(result):
    assert "had not converged" not in "".join(result.sections)
    result.numbers["variants"]["11 × 11 grey values"]["cobpm"]["unsettled"] = 1
    page = "".join(images_page.sections(result.numbers))
    assert "had not converged in 11 × 11 grey values: 1 of 1." in page

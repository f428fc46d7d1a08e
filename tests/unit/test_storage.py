"""Files and other libraries' structures: what comes back is what went in."""

import contextlib
import os
import pickle
import stat

import numpy as np
import pytest

import cobpm
from cobpm import storage

RNG = np.random.default_rng(8)
X, Y = RNG.normal(size=(150, 2)), RNG.normal(size=(120, 2)) + 1
anyway = pytest.mark.filterwarnings("ignore::cobpm.diagnostics.ConvergenceWarning")


def posterior(seed=1, **settings):
    return cobpm.compare(X, Y, rng=seed, draws=60, **settings, model="paper")


@anyway
@pytest.mark.parametrize(
    "settings",
    [
        {"engine": "exact"},
        {"engine": "pruned", "max_regions": 5000, "chains": 2},
        {"engine": "mcmc", "kernel": "guided", "burn_in": 10},
        {"bounds": "ranks"},
        {"delta": 1.5},
    ],
)
def test_round_trip(tmp_path, settings):
    post = posterior(**settings)
    post.save(tmp_path / "post.npz")
    again = cobpm.load(str(tmp_path / "post.npz"))
    assert repr(again) == repr(post)
    assert again.summary().equals(post.summary())
    assert again.regions().equals(post.regions())
    np.testing.assert_array_equal(again.density(X, "x"), post.density(X, "x"))
    np.testing.assert_array_equal(again.log_ratio(Y), post.log_ratio(Y))
    for name in ("kl", "squared_hellinger", "tv", "renyi:2"):
        assert again.estimate(name) == post.estimate(name)
    for name in ("names", "columns", "domain", "model", "report", "notices", "log_evidence"):
        assert getattr(again, name) == getattr(post, name), name
    assert again.provenance == post.provenance
    if post.leaf_probabilities is None:
        assert again.leaf_probabilities is None
    else:
        np.testing.assert_array_equal(again.leaf_probabilities, post.leaf_probabilities)
    # And once more: a loaded posterior can be saved.
    again.save(tmp_path / "again.npz")
    assert cobpm.load(tmp_path / "again.npz").summary().equals(post.summary())


@pytest.mark.parametrize("samples", [[X], [X, Y, X + 1], {"é": X, "b c": Y}, [np.ones((3, 2))]])
def test_round_trip_of_any_number_of_sets(tmp_path, samples):
    post = cobpm.fit(samples, rng=1, draws=20, model="paper")
    post.save(tmp_path / "post")
    again = cobpm.load(tmp_path / "post")
    assert again.names == post.names
    np.testing.assert_array_equal(again.masses, post.masses)
    assert again.domain == post.domain


def test_a_file_is_replaced_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "post.npz"
    posterior(seed=1).save(path)
    before = path.read_bytes()

    def fail(file, **arrays):
        file.write(b"half of it")
        raise OSError("no space left on device")

    for broken in (fail, interrupt):
        with monkeypatch.context() as patch:
            patch.setattr(storage.np, "savez", broken)
            with pytest.raises((OSError, KeyboardInterrupt)):
                posterior(seed=2).save(path)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["post.npz"]
    posterior(seed=2).save(path)
    assert path.read_bytes() != before
    assert os.listdir(tmp_path) == ["post.npz"]


def interrupt(file, **arrays):
    raise KeyboardInterrupt


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
def test_the_file_has_an_ordinary_mode(tmp_path):
    posterior().save(tmp_path / "post.npz")
    (tmp_path / "other").touch()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def refused(call, path):
    with pytest.raises(
        cobpm.InputError, match=r"^The 'path' parameter of (load|save)\(\)"
    ) as caught:
        call(path)
    return str(caught.value)


def test_where_a_file_cannot_go(tmp_path):
    post = posterior()
    message = refused(post.save, tmp_path / "missing" / "post.npz")
    assert "folder that exists" in message
    assert "Create the folder first" in message
    assert "Add the name of a file" in refused(post.save, tmp_path)
    assert "path of a file" in refused(post.save, None)
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_loaded(tmp_path):
    assert "file that exists" in refused(cobpm.load, tmp_path / "missing.npz")
    assert "file that exists" in refused(cobpm.load, tmp_path)
    assert "path of a file" in refused(cobpm.load, 7)

    foreign = tmp_path / "foreign"
    writers = [
        lambda file: file.write(b"a,b\n1,2\n"),
        lambda file: file.write(b""),
        lambda file: pickle.dump({"a": 1}, file),
        lambda file: np.save(file, X),
        lambda file: np.save(file, np.array([{}], dtype=object)),
        lambda file: np.savez(file, about=np.array("{}")),
        lambda file: np.savez(file, about=np.array("[1, 2]")),
        lambda file: np.savez_compressed(file, splits=X),
    ]
    for write in writers:
        with foreign.open("wb") as file:
            write(file)
        assert "file that Posterior.save wrote" in refused(cobpm.load, foreign)


def test_damaged_files(tmp_path):
    path, damaged = tmp_path / "post.npz", tmp_path / "damaged.npz"
    posterior().save(path)
    whole = path.read_bytes()
    for share in (0.0, 0.1, 0.5, 0.9, 0.999):
        damaged.write_bytes(whole[: int(share * len(whole))])
        refused(cobpm.load, damaged)
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 60):
        flipped = bytearray(whole)
        flipped[place] ^= 0xFF
        damaged.write_bytes(flipped)
        with contextlib.suppress(cobpm.InputError):  # some bytes do not matter: times, padding
            cobpm.load(damaged)


def test_files_of_another_version(tmp_path, monkeypatch):
    path = tmp_path / "post.npz"
    with monkeypatch.context() as patch:
        patch.setattr(storage, "FORMAT", 99)
        posterior().save(path)
    message = refused(cobpm.load, path)
    assert "Got format 99" in message
    assert "another version" in message


@anyway
@pytest.mark.parametrize("engine", ["exact", "mcmc"])
def test_datatree(engine):
    pytest.importorskip("xarray")
    post = posterior(engine=engine, burn_in=50)
    tree = post.to_datatree()
    draws = tree["posterior"]
    assert draws["kl"].dims == ("chain", "draw")
    assert draws["kl"].shape == ((4, 15) if engine == "mcmc" else (1, 60))
    np.testing.assert_array_equal(draws["kl"].to_numpy().ravel(), post.draws("kl"))
    np.testing.assert_array_equal(draws["leaves"].to_numpy().ravel(), post.leaves)
    assert draws.attrs["inference_library"] == "cobpm"
    assert np.isfinite(tree["sample_stats"]["lp"]).all()

"""`cobpm reproduce images`, seen from outside."""

import json

import cv2
import numpy as np
import pytest
from click.testing import CliRunner

from cobpm.cli import main
from cobpm.experiments import framework, images
from cobpm.experiments.image_features import SCENES


@pytest.fixture
def out(tmp_path, monkeypatch):
    monkeypatch.setenv("COBPM_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def data(tmp_path):
    root = tmp_path / "data"
    for number, name in enumerate(SCENES):
        (root / name).mkdir(parents=True)
        for one in range(3):
            noise = np.random.default_rng([number, one]).integers(0, 256, (40, 40), dtype=np.uint8)
            cv2.imwrite(str(root / name / f"{one}.jpg"), noise)
    return root


def call(*arguments, name="images"):
    return CliRunner().invoke(main, ["reproduce", name, *map(str, arguments)])


def refused(found, out, *words):
    assert found.exit_code == 2, found.output
    for word in words:
        assert word in " ".join(found.output.split()), found.output
    assert "Traceback" not in found.output
    assert list(out.iterdir()) == []
    assert not (out.parent / "cache").exists()


def test_textures_without_data(out, monkeypatch):
    monkeypatch.setattr(images, "QUICK_PLAN", images.Plan(5, 4, 2, 6, 20, 8, 3, 3, 1))
    found = call("--quick", "--out", out)
    assert found.exit_code == 0, found.output
    assert "Textures in place of the paper's scenes" in found.output
    assert sorted(path.name for path in out.iterdir()) == ["images.json", "images.md", "images.png"]
    content = json.loads((out / "images.json").read_text(encoding="utf-8"))
    assert content["provenance"]["command"] == "cobpm reproduce images --quick"
    page = (out / "images.md").read_text(encoding="utf-8")
    assert "says nothing about the paper" in page
    assert len(list((out.parent / "cache").iterdir())) == 1
    # The same numbers again, now with patches from the cache.
    assert call("--quick", "--out", out).exit_code == 0
    assert (
        json.loads((out / "images.json").read_text(encoding="utf-8"))["numbers"]
        == (content["numbers"])
    )


def test_folder_without_the_classes(out, data):
    (data / "coast").rename(data / "beach")
    refused(call("--quick", "--data", data, "--out", out), out, "has no folder 'coast'")


def test_no_such_folder(out, data):
    refused(call("--data", data / "no", "--out", out), out, "does not exist")


def test_broken_picture(out, data):
    (data / "highway" / "1.jpg").write_bytes(b"\xff\xd8\xff nothing more")
    refused(call("--quick", "--data", data, "--out", out), out, "1.jpg' cannot be read")


def test_all_looks_at_the_data_first(out, data, monkeypatch):
    """Nothing is run for minutes before a folder turns out to be of no use."""
    monkeypatch.setattr(framework, "reproduce", None)  # not to be called
    (data / "highway" / "1.jpg").write_bytes((data / "highway" / "1.jpg").read_bytes()[:-40])
    found = call("--quick", "--data", data, "--out", out, name="all")
    refused(found, out, "1.jpg' cannot be read")
    (data / "highway").rename(data / "road")
    found = call("--quick", "--data", data, "--out", out, name="all")
    refused(found, out, "has no folder 'highway'")


def test_too_few_pictures(out, data):
    words = "too few pictures of the class 'mountain': 3"
    refused(call("--quick", "--data", data, "--out", out), out, words)


def test_pictures_that_are_too_small(out, data, monkeypatch):
    monkeypatch.setattr(images, "QUICK_PLAN", images.Plan(2, 3, 2, 6, 20, 8, 3, 2, 1))
    for path in data.glob("*/*.jpg"):
        cv2.imwrite(str(path), cv2.imread(str(path))[:20, :20])
    refused(call("--quick", "--data", data, "--out", out), out, "is too small")

"""Files of sketches: whole, checked, and plain about what is wrong with them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cobpm
from cobpm import InputError, Sketch
from cobpm.sketch_file import ABOUT, DIGEST, GRID, _digest, is_sketch


@pytest.fixture
def sketch():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(500, 2))
    table[::3, 1] = 7.0
    return Sketch.of({"a": table, "ä b": table[:100] + 0.1}, max_cells=300)


def test_there_and_back(sketch, tmp_path):
    sketch.save(tmp_path / "one")
    found = Sketch.load(str(tmp_path / "one"))
    assert found == sketch
    assert found.names == sketch.names
    found.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert found + sketch == sketch + sketch
    assert is_sketch(tmp_path / "one")


def test_others_can_read_it(sketch, tmp_path):
    sketch.save(tmp_path / "one.parquet")
    table = pq.read_table(tmp_path / "one.parquet").to_pandas()
    assert list(table.columns) == ["set", "cell", "count"]
    assert table.groupby("set")["count"].sum().tolist() == [500, 100]


def test_a_sketch_without_rows(sketch, tmp_path):
    empty = cobpm.SketchBuilder(sketch.grid).sketch()
    empty.save(tmp_path / "empty")
    assert Sketch.load(tmp_path / "empty") == empty


def test_every_damaged_byte_is_found(sketch, tmp_path):
    path = tmp_path / "one.parquet"
    sketch.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    said = []
    for at in rng.choice(len(whole), 300, replace=False):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            found = Sketch.load(path)
        except InputError as error:
            said.append(str(error))
        else:  # statistics and the like, which are not needed
            assert found == sketch
    assert len(said) > 250
    assert all("one.parquet" in sentence for sentence in said)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.999])
def test_truncated_files(sketch, tmp_path, share):
    path = tmp_path / "one.parquet"
    sketch.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(InputError, match=r"one\.parquet.*damaged"):
        Sketch.load(path)
    assert not is_sketch(path)


def test_foreign_files(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"x": [1, 2]}), path)
    with pytest.raises(InputError, match=r"table\.parquet.*holds no sketch"):
        Sketch.load(path)
    assert not is_sketch(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"table\.parquet"):
        Sketch.load(path)
    with pytest.raises(InputError, match="name a file that exists"):
        Sketch.load(tmp_path / "none")
    with pytest.raises(InputError, match="be the path of a file"):
        Sketch.load(3)


def changed(path, *, sign=True, **changes):
    """Another file with changes to what it says about itself, and a digest that fits or not."""
    table, kept = pq.read_table(path), dict(pq.read_metadata(path).metadata)
    kept[ABOUT] = json.dumps(json.loads(kept[ABOUT]) | changes).encode()
    columns = [np.ascontiguousarray(table[name].to_numpy()) for name in table.column_names]
    if sign:
        kept[DIGEST] = _digest(kept[ABOUT], kept[GRID], *columns)
    pq.write_table(table.replace_schema_metadata(kept), path)


def test_newer_formats(sketch, tmp_path):
    path = tmp_path / "one"
    sketch.save(path)
    changed(path, format=2, cobpm="9.9")
    with pytest.raises(InputError, match=r"Got format 2 in .*written by cobpm 9\.9: update"):
        Sketch.load(path)


def test_what_the_digest_does_not_cover_is_nothing(sketch, tmp_path):
    path = tmp_path / "one"
    sketch.save(path)
    changed(path, sign=False, max_cells=301)  # nothing else is wrong with it
    with pytest.raises(InputError, match="do not match their digest"):
        Sketch.load(path)
    changed(path, max_cells=301)
    assert Sketch.load(path).max_cells == 301


@pytest.mark.parametrize("wrong", [{"bits": 64}, {"finest": 13}, {"max_cells": 0}, {"sets": []}])
def test_what_no_sketch_would_say(sketch, tmp_path, wrong):
    path = tmp_path / "one"
    sketch.save(path)
    changed(path, **wrong)
    with pytest.raises(InputError, match=r"name a file that Sketch\.save wrote"):
        Sketch.load(path)


def test_posteriors_and_sketches_are_not_mixed_up(sketch, tmp_path):
    sketch.save(tmp_path / "one")
    with pytest.raises(InputError, match=r"Sketch\.load"):
        cobpm.load(tmp_path / "one")


def test_a_folder_that_does_not_exist(sketch, tmp_path):
    with pytest.raises(InputError, match="folder that exists"):
        sketch.save(tmp_path / "no" / "one")
    assert list(tmp_path.iterdir()) == []

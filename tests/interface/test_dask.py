"""Dask collections on a cluster of processes: the answers of rows in memory, bit for bit."""

import os
import signal
import subprocess
import sys
import textwrap
import time
import traceback

import numpy as np
import pandas as pd
import pytest

import cobpm
from cobpm import InputError, Sketch
from cobpm.grid_builder import MOST_BINS

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

SIZES = (0, 3_000, 1, 70, 0, 12, 500)  # rows of the partitions
ROWS = sum(SIZES)
BOUNDS = {"size": (-2, 3), "count": (0, 16), "when": (1.7e9, 1.8e9)}


@pytest.fixture(scope="module")
def cluster():
    """Two processes, and a client that is active while the tests of this module run."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def table(seed, shift=0.0, rows=ROWS):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": rng.normal(shift, 1, rows),
            "count": rng.poisson(3, rows),
            "when": pd.Timestamp("2024-05-01") + pd.to_timedelta(rng.integers(0, 10**6, rows), "s"),
        }
    )


def in_pieces(frame, sizes=SIZES):
    """A Dask data frame whose partitions have these sizes."""
    ends = np.cumsum(sizes)
    pieces = [frame.iloc[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    return dd.from_map(lambda piece: piece, pieces, meta=frame.iloc[:0])


def assert_same(found, wanted):
    """Equal in every bit."""
    assert found == wanted
    assert (found.names, found.columns, found.bits) == (wanted.names, wanted.columns, wanted.bits)
    for mine, theirs in zip(found.grid.cuts, wanted.grid.cuts, strict=True):
        assert mine.tobytes() == theirs.tobytes()
    for name in wanted.names:
        mine, theirs = found.sets[name], wanted.sets[name]
        assert mine.keys.tobytes() == theirs.keys.tobytes()
        assert mine.counts.tobytes() == theirs.counts.tobytes()
        assert (mine.beyond, mine.dropped) == (theirs.beyond, theirs.dropped)


@pytest.mark.parametrize("max_cells", [200, 1_000_000])
@pytest.mark.parametrize("bounds", [None, BOUNDS], ids=["ranks", "bounds"])
def test_sketches(cluster, bounds, max_cells):
    x, y = table(1), table(2, 0.3)
    wanted = Sketch.of({"x": x, "y": y}, bounds=bounds, max_cells=max_cells)
    found = Sketch.of(
        {"x": in_pieces(x), "y": dd.from_pandas(y, npartitions=11)},
        bounds=bounds,
        max_cells=max_cells,
    )
    assert_same(found, wanted)
    assert wanted.cells <= max_cells
    assert_same(Sketch.of(in_pieces(x), grid=wanted.grid), Sketch.of(x, grid=wanted.grid))


def test_more_values_than_a_grid_remembers(cluster):
    x = table(1, rows=90_000)
    assert x["size"].nunique() > MOST_BINS
    assert_same(Sketch.of(dd.from_pandas(x, npartitions=3)), Sketch.of(x))


def test_rows_in_memory_beside_a_collection(cluster):
    x, y = table(1), table(2, 0.3)
    found = Sketch.of({"y": y, "x": in_pieces(x)})
    assert_same(found, Sketch.of({"y": y, "x": x}))


def test_series(cluster):
    x = table(1)["size"]
    assert_same(Sketch.of(dd.from_pandas(x, npartitions=4)), Sketch.of(x))


def test_posterior(cluster):
    x, y = table(1), table(2, 0.3)
    sketch = Sketch.of({"x": x, "y": y})
    wanted = cobpm.compare(sketch.select("x"), sketch.select("y"), rng=5, draws=200)
    found = cobpm.compare(in_pieces(x), in_pieces(y), rng=5, draws=200)
    assert found.draws("kl").tobytes() == wanted.draws("kl").tobytes()
    assert found.log_bayes_factor == wanted.log_bayes_factor
    assert found.regions().equals(wanted.regions())
    assert "first pass" in found.notices[0]
    assert "bounds=" in found.notices[0]


def test_fit_pairwise_and_bounds(cluster):
    sets = {str(k): table(k, 0.2 * k)[["size", "count"]] for k in range(3)}
    bounds = {"size": (-8, 8), "count": (0, 16)}
    sketch = Sketch.of(sets, bounds=bounds)
    pieces = {name: in_pieces(frame) for name, frame in sets.items()}
    wanted = cobpm.fit(sketch, rng=5, draws=100)
    found = cobpm.fit(pieces, bounds=bounds, rng=5, draws=100)
    assert found.draws("kl", "0", "2").tobytes() == wanted.draws("kl", "0", "2").tobytes()
    assert "Dask" in found.notices[0]
    assert "pass" not in found.notices[0]
    wanted = cobpm.pairwise(sketch, rng=5, draws=100)
    found = cobpm.pairwise(pieces, bounds=bounds, rng=5, draws=100)
    assert found.matrix.tobytes() == wanted.matrix.tobytes()


def test_test(cluster):
    x, y = table(1), table(2, 0.1)
    sketch = Sketch.of({"x": x, "y": y}, bounds=BOUNDS)
    wanted = cobpm.test(sketch.select("x"), sketch.select("y"), permutations=99, rng=5)
    found = cobpm.test(in_pieces(x), in_pieces(y), bounds=BOUNDS, permutations=99, rng=5)
    assert (found.statistic, found.pvalue) == (wanted.statistic, wanted.pvalue)
    assert "Dask" in found.notices[0]


@pytest.mark.parametrize("kind", ["int", "float", "str", "category", "datetime64[s]"])
def test_groups(cluster, kind):
    x = table(1)[["size", "count"]].assign(site=np.arange(ROWS) % 3 * 5 + 5)  # 5, 10, 15
    x["site"] = x["site"].astype(kind)
    local = cobpm.pairwise(x, groups="site", rng=5, draws=20)
    sets = {name: x[x["site"].astype(str) == name].drop(columns="site") for name in local.names}
    if kind.startswith("date"):
        sets = {str(k): one.drop(columns="site") for k, one in x.groupby("site")}
    wanted = cobpm.pairwise(Sketch.of(sets), rng=5, draws=20)
    found = cobpm.pairwise(in_pieces(x), groups="site", rng=5, draws=20)
    assert found.names == local.names
    assert found.matrix.tobytes() == wanted.matrix.tobytes()
    assert "Dask" in found.notices[0]


def test_bad_groups(cluster):
    x = table(1).assign(site="a")
    with pytest.raises(InputError, match="at least two sets"):
        cobpm.pairwise(in_pieces(x), groups="site")
    with pytest.raises(InputError, match=r"name a column.*Got 'place'.*'site'"):
        cobpm.pairwise(in_pieces(x), groups="place")
    with pytest.raises(InputError, match=r"Put the labels into a column"):
        cobpm.pairwise(in_pieces(x), groups=x["site"])
    with pytest.raises(InputError, match="name a column of a data frame"):
        cobpm.pairwise(da.zeros((4, 2)), groups="site")
    x.loc[50, "site"] = None
    message = clear_error(lambda: cobpm.pairwise(in_pieces(x), groups="site"))
    assert message.startswith("In samples.partitions[1]: ")
    assert "1 of 3000 rows without one" in message


def test_beside_a_sketch(cluster):
    x, y = table(1), table(2, 0.3)
    sketch = Sketch.of(x)
    wanted = cobpm.compare(sketch, y, rng=5, draws=100)
    found = cobpm.compare(sketch, in_pieces(y), rng=5, draws=100)
    assert found.draws("kl").tobytes() == wanted.draws("kl").tobytes()
    assert "'y'" in found.notices[0]


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_a_worker_that_dies(cluster, tmp_path):
    x = table(1)

    def piece(k, died=str(tmp_path / "died")):
        time.sleep(0.05)
        if k == 7 and not os.path.exists(died):
            open(died, "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return x.iloc[k::15]

    found = Sketch.of(dd.from_map(piece, range(15), meta=x.iloc[:0]), max_cells=500)
    assert (tmp_path / "died").exists()
    assert_same(found, Sketch.of(x, max_cells=500))


def test_arrays(cluster):
    rows = table(1)[["size", "count"]].to_numpy()
    wanted = Sketch.of(rows)
    for chunks in ((1000, 2), (701, 1), (len(rows), 1)):  # along the columns, too
        assert_same(Sketch.of(da.from_array(rows, chunks=chunks)), wanted)
    flat = da.from_array(rows[:, 0], chunks=500)
    assert_same(Sketch.of(flat), Sketch.of(rows[:, 0]))
    whole = da.from_array(rows.astype(int), chunks=(900, 1))
    assert_same(Sketch.of(whole), Sketch.of(rows.astype(int)))


def test_unknown_chunk_sizes(cluster):
    rows = table(1)[["size", "count"]].to_numpy()
    wanted = Sketch.of(rows[rows[:, 0] > 0])
    for chunks in ((1000, 2), (900, 1)):
        array = da.from_array(rows, chunks=chunks)
        positive = array[array[:, 0] > 0]
        assert np.isnan(positive.shape[0])
        assert_same(Sketch.of(positive), wanted)
    columns = array[:, array.sum(axis=0) > 0]
    with pytest.raises(InputError, match=r"known number of columns.*compute_chunk_sizes"):
        Sketch.of(columns)
    with pytest.raises(InputError, match=r"'x' parameter of compare\(\).*one row per point"):
        cobpm.compare(da.zeros((3, 3, 3)), rows)


def clear_error(call):
    """The message of a refusal that shows nothing of the scheduler."""
    with pytest.raises(InputError) as caught:
        call()
    shown = "".join(traceback.format_exception(caught.value))
    assert "distributed" not in shown
    assert "dask/" not in shown.replace("/dask/src/", "/src/").replace("/dask/tests/", "/tests/")
    assert len(traceback.extract_tb(caught.value.__traceback__)) < 10
    return str(caught.value)


def test_missing_values(cluster):
    x, y = table(1), table(2)
    x.loc[40, "size"] = np.nan  # in the second partition
    message = clear_error(lambda: cobpm.compare(in_pieces(x), y))
    assert message.startswith("In x.partitions[1]: The 'x' parameter of compare()")
    assert "column 'size'; first in row 40" in message
    found = Sketch.of({"x": in_pieces(x), "y": in_pieces(y)}, missing="drop")
    assert_same(found, Sketch.of({"x": x, "y": y}, missing="drop"))
    assert found.sets["x"].dropped == 1
    rows = x[["size", "count"]].to_numpy()
    message = clear_error(lambda: Sketch.of(da.from_array(rows, chunks=(30, 1))[:90]))
    assert message.startswith("In rows.blocks[1]: ")
    assert "column 'c1'; first in row 10" in message


def test_a_partition_with_other_columns(cluster):
    x = table(1)
    pieces = [x[:100], x[100:200], x[200:300].rename(columns={"count": "number"})]
    frame = dd.from_map(lambda piece: piece, pieces, meta=x.iloc[:0])
    message = clear_error(lambda: Sketch.of({"a": frame}))
    assert message.startswith("In rows['a'].partitions[2]: ")
    assert "'number' only in" in message
    assert "'count' only in" in message
    message = clear_error(lambda: cobpm.compare(x, in_pieces(x[["size", "count"]])))
    assert "must have the same columns" in message  # known before any work


def test_refused_before_any_work(cluster):
    def never(k):
        raise AssertionError

    x = pd.DataFrame({"a": [1.0], "b": ["text"]})
    frame = dd.from_map(never, [1, 2], meta=x.iloc[:0])
    with pytest.raises(InputError, match=r"numeric columns only. Got 'b \(String\)'"):
        cobpm.compare(frame, frame)
    with pytest.raises(InputError, match="complex numbers"):
        Sketch.of(da.zeros((4, 2), dtype=complex))
    frame = dd.from_map(never, [1, 2], meta=x[["a"]].iloc[:0])
    for bad in ({"draws": 0}, {"rng": "x"}, {"model": "x"}):
        for call in (cobpm.compare, lambda *sets, **bad: cobpm.fit(sets, **bad)):
            with pytest.raises(InputError, match=f"'{next(iter(bad))}' parameter"):
                call(frame, frame, **bad)
    with pytest.raises(InputError, match="divergence"):
        cobpm.pairwise([frame, frame], "kll")
    with pytest.raises(InputError, match="permutations"):
        cobpm.test(frame, frame, permutations=0)
    with pytest.raises(InputError, match="max_cells"):
        Sketch.of(frame, max_cells=0)
    with pytest.raises(InputError, match="missing"):
        Sketch.of(frame, missing="ignore")
    with pytest.raises(InputError, match="bounds"):
        Sketch.of(frame, bounds=(3, 1))


def test_no_rows_at_all(cluster):
    none = in_pieces(table(1).iloc[:0], (0, 0))
    with pytest.raises(InputError, match="no rows"):
        Sketch.of(none)
    with pytest.raises(InputError, match="none in 'x'"):
        cobpm.compare(none, table(2))


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_interrupt(cluster):
    script = f"""
        import time
        import dask.dataframe as dd, pandas as pd
        from dask.distributed import Client
        from cobpm import Sketch

        def slow(k):
            time.sleep(0.5)
            return pd.DataFrame({{"a": [float(k)]}})

        with Client("{cluster.scheduler.address}"):
            frame = dd.from_map(slow, range(400), meta={{"a": float}})
            print("ready", flush=True)
            try:
                Sketch.of(frame)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
        """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        wait_until(lambda: tasks_of(cluster) > 400)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)
        assert output == "interrupted\n"
        assert time.monotonic() - began < 10
        wait_until(lambda: tasks_of(cluster) == 0)
    finally:
        process.kill()
        process.wait()


def tasks_of(client):
    return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def wait_until(true, seconds=10):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_dask_is_not_loaded_for_arrays():
    script = """
        import sys, numpy as np, pandas as pd, cobpm
        cobpm.Sketch.of(pd.DataFrame({"a": np.arange(9.0)}))
        cobpm.compare(np.arange(9.0), np.arange(9.0), draws=9)
        assert "dask" not in sys.modules
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)

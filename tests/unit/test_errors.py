import numpy as np
import pytest

from benchmarks.errors import by_problem, data, markdown, overall, read, run
from benchmarks.problems import TUNING
from benchmarks.seen_problems import SEEN
from benchmarks.untouched_problems import UNTOUCHED

PROBLEMS = {problem.name: problem for problem in TUNING + SEEN + UNTOUCHED}
SHIFT, SAME, CORRELATIONS = (PROBLEMS[name] for name in ("shift-5", "same-normal", "correlations"))


def above(x, y):
    """Always 0.1 above the truth of `SHIFT`, in an interval that holds it but not zero."""
    return {"kl": (0.5, 0.35, 0.6), "renyi:2": 0.8}


def mean(x, y):
    return {"kl": float(x.mean())}


def test_records_hold_what_methods_answer():
    records = run([SHIFT], {"above": above, "mean": mean}, [5], 2)
    assert [(r.replicate, r.method, r.divergence) for r in records] == [
        (0, "above", "kl"),
        (0, "above", "renyi:2"),
        (0, "mean", "kl"),
        (1, "above", "kl"),
        (1, "above", "renyi:2"),
        (1, "mean", "kl"),
    ]
    first, second = records[:2]
    assert (first.problem, first.n, first.low, first.high) == ("shift-5", 5, 0.35, 0.6)
    assert first.truth == pytest.approx(0.4)
    assert np.isnan(second.low)
    assert first.seconds >= 0


def test_data_depend_on_problem_size_and_replicate_alone():
    few = run([SHIFT], {"mean": mean}, [5], 1)
    many = run([SAME, SHIFT], {"above": above, "mean": mean}, [9, 5], 3)
    again = [
        r for r in many if (r.problem, r.n, r.replicate, r.method) == ("shift-5", 5, 0, "mean")
    ]
    assert [r.estimate for r in again] == [r.estimate for r in few]
    drawn = [data(SHIFT, 5, 0), data(SHIFT, 5, 1), data(SAME, 5, 0)]
    assert len({float(x[0, 0]) for x, _ in drawn}) == 3


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    file, asked = tmp_path / "records.jsonl", []

    def counted(x, y):
        asked.append(len(x))
        return above(x, y)

    run([SHIFT], {"a": counted}, [5], 2, file)
    text = file.read_text(encoding="utf-8")
    file.write_text(text[:-20], encoding="utf-8")  # killed while it wrote the last answer
    records = run([SHIFT], {"a": counted}, [5], 3, file)
    assert asked == [5] * 4
    assert [r.replicate for r in records] == [0, 0, 1, 1, 2, 2]
    assert [r.estimate for r in read(file)] == [r.estimate for r in records]


def test_error_bias_and_coverage_by_problem():
    table = by_problem(run([SHIFT, SAME], {"above": above}, [5], 3))
    shift, same = (table.loc[("above", "kl", 5, name)] for name in ("shift-5", "same-normal"))
    assert shift["error"] == shift["bias"] == pytest.approx(0.1)
    assert (shift["coverage"], same["coverage"]) == (1, 0)
    assert np.isnan(table.loc[("above", "renyi:2", 5, "shift-5"), "coverage"])


def test_geometric_mean_with_floor_and_without_infinite_truths():
    records = run([SHIFT, SAME, CORRELATIONS], {"above": above}, [5], 1)
    table = overall(records)
    kl, renyi = table.loc[("above", "kl", 5)], table.loc[("above", "renyi:2", 5)]
    assert (kl["problems"], renyi["problems"]) == (3, 2)  # the third is infinite
    assert kl["error"] == pytest.approx((0.1 * 0.5 * 0.625) ** (1 / 3))
    assert renyi["error"] == pytest.approx((1e-3 * 0.8) ** (1 / 2))  # one is exact: the floor
    assert kl["coverage"] == pytest.approx(1 / 3)


def test_table():
    text = markdown(run([SHIFT], {"above": above, "mean": mean}, [5, 9], 2))
    rows = text.splitlines()
    assert rows[0] == "| error × 1000 at n = 5 / 9 | kl | renyi:2 |"
    assert rows[2] == "| above | 100 / 100 | 1 / 1 |"
    assert rows[3].startswith("| mean |")
    assert rows[3].endswith("| – |")

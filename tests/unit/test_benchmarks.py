import pytest

from benchmarks import accuracy, pairs, paper_bias, sketches, speed, streaming

HEADINGS = {
    speed: ("## Comparing two samples", "## Chains", "## Import"),
    paper_bias: ("# The bias", "| uniform, the same law |", "| the paper's two beta mixtures |"),
    accuracy: ("# Accuracy", "## Tuning problems", "## Untouched problems", "Seconds per call"),
    sketches: ("# What a sketch loses", "## Hellinger", "| 1,000,000 |", "## Counting"),
    pairs: ("# All pairs", "pair by pair", "the same as that of the straight run"),
    streaming: ("# Files larger than memory", "| one pass |", "| two passes |", "| scan |"),
}


@pytest.mark.parametrize("benchmark", HEADINGS, ids=lambda module: module.__name__)
def test_the_benchmark_still_runs(benchmark, tmp_path):
    out = tmp_path / "results.md"
    benchmark.main(["--quick", "--out", str(out)])
    text = out.read_text(encoding="utf-8")
    assert all(heading in text for heading in HEADINGS[benchmark])
    assert "nan" not in text

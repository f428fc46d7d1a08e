import pytest

from benchmarks import accuracy, speed

HEADINGS = {
    speed: ("## Comparing two samples", "## Chains", "## Import"),
    accuracy: ("# Accuracy", "| uniform, the same law |", "| the paper's two beta mixtures |"),
}


@pytest.mark.parametrize("benchmark", HEADINGS, ids=["speed", "accuracy"])
def test_the_benchmark_still_runs(benchmark, tmp_path):
    out = tmp_path / "results.md"
    benchmark.main(["--quick", "--out", str(out)])
    text = out.read_text(encoding="utf-8")
    assert all(heading in text for heading in HEADINGS[benchmark])
    assert "nan" not in text

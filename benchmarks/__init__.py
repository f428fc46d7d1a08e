"""How long things take: `python -m benchmarks.speed` measures, `benchmarks/results` keeps."""

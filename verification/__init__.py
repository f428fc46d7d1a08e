"""Statistical verification that takes minutes, run by hand; its tables are in `results`."""

"""How many threads to use. Results never depend on it."""

from __future__ import annotations

import os


def thread_count() -> int:
    """The processors this process may use, or what the environment variable COBPM_THREADS says."""
    asked = os.environ.get("COBPM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

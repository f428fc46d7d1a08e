"""How many threads to use. Results never depend on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_limit: ContextVar[int | None] = ContextVar("most threads", default=None)


def thread_count() -> int:
    """The processors this process may use, or what the environment variable COBPM_THREADS says."""
    if (limit := _limit.get()) is not None:
        return limit
    asked = os.environ.get("COBPM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep the work inside to the calling thread: for work that is itself spread over threads."""
    token = _limit.set(1)
    try:
        yield
    finally:
        _limit.reset(token)

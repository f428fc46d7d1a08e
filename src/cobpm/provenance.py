"""Where a result comes from."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

import cobpm
from cobpm.samples import Samples
from cobpm.sketched import Sketched


def fingerprint(samples: Samples | Sketched) -> str:
    """A number in hexadecimal digits that any other points would change."""
    digest = hashlib.sha256()
    for values in samples.values:
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def provenance(settings: Mapping[str, Any], samples: Samples | Sketched) -> dict[str, Any]:
    """What is needed to tell later how a result came about."""
    return {
        "cobpm": cobpm.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": dict(settings),
        "sets": dict(zip(samples.names, samples.sizes, strict=True)),
        "columns": list(samples.columns),
        "data_sha256": fingerprint(samples),
    }

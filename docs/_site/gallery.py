"""The order of the gallery: from the everyday to the particular."""

from __future__ import annotations

ORDER = ("drift.py", "groups.py", "samplers.py", "clusters.py", "tumours.py", "sizes.py")


class Order:
    """Sort key for sphinx-gallery; what has no place yet comes last, by name."""

    def __init__(self, folder: str) -> None:
        """Sphinx-gallery tells the folder, of which there is one."""

    def __call__(self, name: str) -> tuple[int, str]:
        """The place of an example."""
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)

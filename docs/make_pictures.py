"""Run the examples of plots.md and keep what they draw: `python docs/make_pictures.py`."""

import re
from pathlib import Path
from typing import Any

import matplotlib

HERE = Path(__file__).parent
EXAMPLE = re.compile(r"```python\n(.*?)```(?:\s*!\[.*?\]\((.*?)\))?", re.DOTALL)


def main() -> None:
    """Write the picture that follows each example to where the page looks for it."""
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names: dict[str, Any] = {}
    for code, picture in EXAMPLE.findall((HERE / "plots.md").read_text(encoding="utf-8")):
        exec(compile(code, "plots.md", "exec"), names)
        if picture:
            (HERE / picture).parent.mkdir(exist_ok=True)
            plt.gcf().savefig(HERE / picture, dpi=80)
            plt.close("all")


if __name__ == "__main__":
    main()

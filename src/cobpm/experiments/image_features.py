"""Pictures as sample sets: a grid of patches, and a vector of numbers for each patch.

Patches sit on a square grid and may differ in size. A patch is described by SIFT (Lowe 1999) in the
upright position, or by its grey values. All vectors are bytes, so that a thousand pictures fit into
memory, and they are kept in a cache folder, because they take longest to make.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cobpm.arrays import FloatArray, IntArray
from cobpm.experiments.framework import Unavailable
from cobpm.outputs import written_whole
from cobpm.progress import Progress
from cobpm.threads import thread_count

Bytes = NDArray[np.uint8]

SCENES = ("mountain", "coast", "highway", "insidecity")  # the paper's, with or without "MIT"
TEXTURES = ("brick", "grass", "gravel")  # of scikit-image, in the public domain (CC0)
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff")
SIFT_WIDTHS = 6  # OpenCV's "size" of a key point is a sixth of the width of the patch it describes
GREY_SIDE = 11  # grey patches are scaled to 11 × 11 points
FLAT = 6.0  # mean gradient, in grey levels per pixel, below which a patch counts as flat
FORMAT = 1  # to be raised when the same settings give other vectors


@dataclass(frozen=True)
class Patches:
    """Where patches are, and how they are described.

    Attributes:
        kind: "sift"; "sift-flat", where the vectors of flat patches are short instead of being
            stretched to full length; or "grey", grey values with their mean and scale taken out.
        smallest: Width of the smallest patch in pixels.
        largest: Width of the largest. Widths in between are equally likely.
        grid: Number of patches in a row, and of rows.
    """

    kind: Literal["sift", "sift-flat", "grey"]
    smallest: float
    largest: float
    grid: int


@dataclass(frozen=True, eq=False)
class Pictures:
    """Grey pictures with their classes.

    Attributes:
        classes: Names of the classes.
        names: One name per picture.
        labels: The class of each, as a number.
        images: The pictures.
        left_out: Names of pictures that are equal to an earlier one.
    """

    classes: tuple[str, ...]
    names: tuple[str, ...]
    labels: IntArray
    images: tuple[Bytes, ...]
    left_out: tuple[str, ...]

    def digest(self) -> str:
        """A word that changes with the pictures."""
        return _digest(*(_digest(image, str(image.shape)) for image in self.images))


# --- reading -----------------------------------------------------------------------------------


def scenes(folder: Path) -> Pictures:
    """Read the paper's four classes from a folder with a folder for each.

    Raises:
        Unavailable: Something is missing or cannot be read; the message says what.
    """
    folders = _folders(folder)
    read: list[tuple[int, str, Bytes]] = []
    for label, name in enumerate(SCENES):
        found = (path for path in folders[name].iterdir() if not path.name.startswith("."))
        for path in sorted(path for path in found if path.suffix.lower() in SUFFIXES):
            read.append((label, f"{folders[name].name}/{path.name}", _read(path)))
    return _without_repeats(SCENES, read)


def textures(side: int) -> Pictures:
    """Squares cut from three pictures of surfaces that come with scikit-image."""
    try:
        from skimage import data
    except ImportError as error:
        needed = "The experiment 'images' needs scikit-image: pip install 'cobpm[reproduce]'"
        raise ImportError(needed) from error
    read: list[tuple[int, str, Bytes]] = []
    for label, name in enumerate(TEXTURES):
        whole = np.asarray(getattr(data, name)(), dtype=np.uint8)
        for row in range(0, whole.shape[0] - side + 1, side):
            for column in range(0, whole.shape[1] - side + 1, side):
                square = np.ascontiguousarray(whole[row : row + side, column : column + side])
                read.append((label, f"{name}/{row}-{column}", square))
    return _without_repeats(TEXTURES, read)


def _folders(folder: Path) -> dict[str, Path]:
    """The folder of every class."""
    try:
        inside = {path.name.lower().removeprefix("mit"): path for path in sorted(folder.iterdir())}
    except OSError as error:
        raise Unavailable(f"The folder '{folder}' cannot be read: {error.strerror}.") from None
    missing = [name for name in SCENES if name not in inside or not inside[name].is_dir()]
    if missing:
        raise Unavailable(
            f"'{folder}' has no folder {', '.join(map(repr, missing))}. It must hold one folder of "
            f"pictures for each of {', '.join(map(repr, SCENES))}."
        )
    return {name: inside[name] for name in SCENES}


def _read(path: Path) -> Bytes:
    """A picture in grey, once it is certain that all of it is there."""
    cv2 = _opencv()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, f"{error.strerror}") from None
    _check_whole(path, content)
    try:
        image = cv2.imdecode(np.frombuffer(content, dtype=np.uint8), cv2.IMREAD_GRAYSCALE)
    except cv2.error:
        image = None
    if image is None:
        raise _unreadable(path, "OpenCV does not know its format")
    return np.asarray(image)


def _check_whole(path: Path, content: bytes) -> None:
    """Refuse what is no picture, and one that has been cut off.

    Whether OpenCV does depends on its version: some make up what is missing, in grey.
    """
    # matplotlib, which draws the results, brings Pillow along.
    from PIL import Image, UnidentifiedImageError

    if not content:
        raise _unreadable(path, "the file is empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about notes of cameras that are not needed here
            with Image.open(BytesIO(content)) as picture:
                picture.load()
    except UnidentifiedImageError:
        raise _unreadable(path, "it is not a picture, or has lost its beginning") from None
    # What damaged files make the decoders raise goes far beyond OSError.
    except Exception as error:
        raise _unreadable(path, str(error) or type(error).__name__) from None


def _unreadable(path: Path, why: str) -> Unavailable:
    return Unavailable(f"The picture '{path}' cannot be read: {why}. Mend it, or take it away.")


def _without_repeats(classes: Sequence[str], read: Sequence[tuple[int, str, Bytes]]) -> Pictures:
    seen: set[str] = set()
    kept, left_out = [], []
    for label, name, image in read:
        digest = _digest(image, str(image.shape))
        if digest in seen:
            left_out.append(name)
        else:
            seen.add(digest)
            kept.append((label, name, image))
    labels, names, images = zip(*kept, strict=True) if kept else ((), (), ())
    return Pictures(
        tuple(classes), tuple(names), np.array(labels, dtype=int), tuple(images), tuple(left_out)
    )


def _opencv() -> Any:
    try:
        import cv2
    except ImportError as error:
        needed = "The experiment 'images' needs OpenCV: pip install 'cobpm[reproduce]'"
        raise ImportError(needed) from error
    return cv2


# --- patches -----------------------------------------------------------------------------------


def grid_centres(shape: tuple[int, ...], patches: Patches) -> FloatArray:
    """Centres (x, y) of the patches, row by row: evenly spread, the largest patches inside."""
    margin = patches.largest / 2
    down, across = (
        np.linspace(margin, side - 1 - margin, patches.grid)
        if patches.grid > 1
        else [(side - 1) / 2]
        for side in shape[:2]
    )
    x, y = np.meshgrid(across, down)
    return np.stack([x.ravel(), y.ravel()], axis=1)


def widths(image: Bytes, patches: Patches) -> FloatArray:
    """Width of each patch: random, but always the same for the same picture."""
    seed = int(_digest(image)[:16], 16)
    return np.random.default_rng(seed).uniform(patches.smallest, patches.largest, patches.grid**2)


def describe(image: Bytes, patches: Patches) -> Bytes:
    """One row of bytes per patch: 128 of SIFT, or 121 grey values."""
    centres, sizes = grid_centres(image.shape, patches), widths(image, patches)
    if patches.kind == "grey":
        return _grey(image, centres, sizes)
    found = _sift(image, centres, sizes)
    if patches.kind == "sift-flat":
        found = found * np.minimum(1.0, _contrast(image, centres, sizes) / FLAT)[:, None]
    return np.asarray(np.rint(found), dtype=np.uint8)


def _sift(image: Bytes, centres: FloatArray, sizes: FloatArray) -> NDArray[np.float32]:
    cv2 = _opencv()
    points = [
        cv2.KeyPoint(float(x), float(y), float(size) / SIFT_WIDTHS, 0.0)  # upright
        for (x, y), size in zip(centres, sizes, strict=True)
    ]
    kept, found = cv2.SIFT_create().compute(image, points)
    assert len(kept) == len(points), "OpenCV has left out patches"
    return np.asarray(found)


def _contrast(image: Bytes, centres: FloatArray, sizes: FloatArray) -> FloatArray:
    """Mean length of the gradient over every patch, from a table of sums."""
    down, across = np.gradient(image.astype(float))
    sums = np.pad(np.hypot(down, across).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    low = np.rint(centres - sizes[:, None] / 2).astype(int)
    high = np.rint(centres + sizes[:, None] / 2).astype(int) + 1
    (left, top), (right, bottom) = (
        np.clip(corner, 0, np.array(image.shape[::-1])).T for corner in (low, high)
    )
    total = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    return np.asarray(total / ((right - left) * (bottom - top)))


def _grey(image: Bytes, centres: FloatArray, sizes: FloatArray) -> Bytes:
    """Grey values with mean 128 and standard deviation 32, at 11 × 11 points of every patch."""
    cv2 = _opencv()
    steps = np.linspace(-0.5, 0.5, GREY_SIDE)
    y, x = (axis.ravel() for axis in np.meshgrid(steps, steps, indexing="ij"))
    across = (centres[:, :1] + sizes[:, None] * x).astype(np.float32)
    down = (centres[:, 1:] + sizes[:, None] * y).astype(np.float32)
    border = cv2.BORDER_REFLECT_101
    values = cv2.remap(image.astype(np.float32), across, down, cv2.INTER_LINEAR, None, border)
    values = values - values.mean(axis=1, keepdims=True)
    scale = np.maximum(values.std(axis=1, keepdims=True), 1.0)  # noise stays small
    return np.asarray(np.clip(np.rint(128 + 32 * values / scale), 0, 255), dtype=np.uint8)


def descriptors(
    pictures: Pictures, patches: Patches, progress: Progress, cache: Path | None = None
) -> Bytes:
    """The vectors of all patches, (pictures, patches, numbers).

    Args:
        pictures: What to describe.
        patches: How.
        progress: Is told how far it is.
        cache: A folder in which to look first, and to keep what was made. It need not exist.
    """
    check_sizes(pictures, patches)
    if cache is None:
        return _described(pictures, patches, progress)
    cv2 = _opencv()
    key = _digest(pictures.digest(), repr(patches), cv2.__version__, str(FORMAT))
    target = cache / f"patches-{key[:24]}.npy"
    kept = _kept(target, len(pictures.images), patches.grid**2)
    if kept is None:
        kept = _described(pictures, patches, progress)
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with written_whole(target) as beside:
                np.save(beside, kept)
        except OSError as error:  # next time it takes as long again, and that is all
            print(f"'{cache}' cannot keep the patches: {error.strerror or error}.", file=sys.stderr)
    progress("patches", 1.0)
    return kept


def check_sizes(pictures: Pictures, patches: Patches) -> None:
    """Refuse pictures that the largest patches do not fit into."""
    for name, image in zip(pictures.names, pictures.images, strict=True):
        if min(image.shape) <= patches.largest:
            across, down = image.shape[::-1]
            raise Unavailable(
                f"The picture '{name}' is too small, {across} × {down} pixels: its sides must be "
                f"longer than the largest patches, {patches.largest:g} pixels."
            )


def _kept(path: Path, pictures: int, patches: int) -> Bytes | None:
    """What the cache holds, unless it is missing or damaged."""
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    fits = found.ndim == 3 and found.shape[:2] == (pictures, patches) and found.dtype == np.uint8
    return found if fits else None


def _described(pictures: Pictures, patches: Patches, progress: Progress) -> Bytes:
    _opencv().setNumThreads(1)  # whole pictures are spread over threads, which OpenCV leaves free
    width = GREY_SIDE**2 if patches.kind == "grey" else 128
    found = np.empty((len(pictures.images), patches.grid**2, width), dtype=np.uint8)
    with ThreadPoolExecutor(thread_count()) as pool:
        rows = pool.map(lambda image: describe(image, patches), pictures.images)
        for row, described in enumerate(rows):
            found[row] = described
            progress("patches", (row + 1) / len(found))
    return found


# --- fewer dimensions --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Projection:
    """The main directions of some vectors.

    Attributes:
        mean: Of the vectors.
        directions: One column per direction, of length one.
        share: Of the variance, for each direction.
    """

    mean: FloatArray
    directions: FloatArray
    share: FloatArray

    def __call__(self, vectors: Bytes) -> FloatArray:
        """Coordinates along the directions."""
        return np.asarray((vectors - self.mean) @ self.directions)


def principal(sets: Iterator[Bytes] | Sequence[Bytes], dimensions: int) -> Projection:
    """Principal components of the vectors of all sets, one set in memory at a time."""
    count, total, products = 0, np.zeros(1), np.zeros((1, 1))
    for values in sets:
        vectors = np.asarray(values, dtype=float)
        count += len(vectors)
        total = total + vectors.sum(axis=0)
        products = products + vectors.T @ vectors
    mean = total / count
    variances, directions = np.linalg.eigh(products / count - np.outer(mean, mean))
    best = np.argsort(variances)[::-1][:dimensions]
    chosen = directions[:, best]
    # The sign of a direction is arbitrary; fixed, for the same numbers everywhere.
    chosen = chosen * np.sign(chosen[np.argmax(np.abs(chosen), axis=0), range(dimensions)])
    return Projection(mean, chosen, variances[best] / variances.sum())


# --- the cache ---------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Where the vectors are kept: COBPM_CACHE, or where the system keeps caches."""
    if asked := os.environ.get("COBPM_CACHE"):
        return Path(asked)
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "cobpm" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "cobpm"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "cobpm"


def _digest(*parts: str | Bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part.encode() if isinstance(part, str) else np.ascontiguousarray(part).data)
        found.update(b"\0")
    return found.hexdigest()

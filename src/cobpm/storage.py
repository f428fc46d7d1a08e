"""Posteriors in files and in other libraries' structures."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm.diagnostics import Convergence, check_partitions
from cobpm.divergences import SUMMARY, parse
from cobpm.engines.fit import Report
from cobpm.frames import Frame
from cobpm.model import PaperModel
from cobpm.outputs import check_output, written_whole
from cobpm.partitions import Partitions
from cobpm.posterior import Posterior
from cobpm.ratio_model import RatioModel
from cobpm.samples import InputError, Seen, bad

if TYPE_CHECKING:
    import xarray as xr

FORMAT = 2


def save(post: Posterior, path: Any) -> None:
    """Write a posterior to a NumPy archive: beside its place first, then moved in one step."""
    target = check_output(path, owner="save")
    _work_out_means(post)
    report = asdict(post.report)
    about = {
        "format": FORMAT,
        "names": post.names,
        "columns": post.columns,
        "model": asdict(post.model),
        "frames": [frame.name for frame in post.frames],
        "report": report,
        "log_evidence": post.log_evidence,
        "log_bayes_factor": post.log_bayes_factor,
        "notices": post.notices,
        "provenance": post.provenance,
        "exact_means": post._exact_means,
    }
    arrays: dict[str, Any] = {
        "about": np.array(json.dumps(about)),
        "splits": post.partitions.splits,
        "node_starts": post.partitions.node_starts,
        "counts": post.partitions.counts,
        "leaf_starts": post.partitions.leaf_starts,
        "masses": post.masses,
        "frame_starts": post.frame_starts,
        **{
            f"frame{k}_{name}": array
            for k, frame in enumerate(post.frames)
            for name, array in frame.to_arrays().items()
        },
    }
    if post.leaf_probabilities is not None:
        arrays["leaf_probabilities"] = post.leaf_probabilities
    with written_whole(target) as beside, beside.open("wb") as file:
        np.savez(file, **arrays)


def load(path: Any) -> Posterior:
    """Read what `save` wrote."""
    try:
        source = Path(path)
    except TypeError:
        raise bad("path", "load", "be the path of a file", path) from None
    if not source.is_file():
        way_out = f"Relative paths start from '{Path.cwd()}'."
        raise bad("path", "load", "name a file that exists", str(source), way_out)
    try:
        with source.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
        if about["format"] != FORMAT:
            raise bad(
                "path",
                "load",
                f"name a file of format {FORMAT}",
                Seen(f"format {about['format']}"),
                "It was written by another version of cobpm.",
            )
        model, report = about["model"], about["report"]
        report["convergence"] = tuple(Convergence(**entry) for entry in report["convergence"])
        report["warnings"] = tuple(report["warnings"])
        report["frames"] = tuple(report["frames"])
        report["frame_weights"] = tuple(report["frame_weights"])
        frames = tuple(
            Frame.from_arrays(
                name,
                {
                    key.removeprefix(f"frame{k}_"): array
                    for key, array in arrays.items()
                    if key.startswith(f"frame{k}_")
                },
            )
            for k, name in enumerate(about["frames"])
        )
        model = {**model, "sizes": tuple(model["sizes"])}
        if invalid := check_partitions(
            arrays["splits"],
            arrays["node_starts"][:-1],
            arrays["counts"],
            arrays["leaf_starts"][:-1],
            model["sizes"],
            model["d"],
        ):
            raise ValueError("; ".join(invalid))
        return Posterior(
            names=tuple(about["names"]),
            columns=tuple(about["columns"]),
            frames=frames,
            frame_starts=arrays["frame_starts"],
            model=PaperModel(**model) if "delta" in model else RatioModel(**model),
            partitions=Partitions(
                arrays["splits"],
                arrays["node_starts"],
                arrays["counts"],
                arrays["leaf_starts"],
                model["d"],
            ),
            masses=arrays["masses"],
            report=Report(**report),
            leaf_probabilities=arrays.get("leaf_probabilities"),
            log_evidence=about["log_evidence"],
            log_bayes_factor=about["log_bayes_factor"],
            notices=tuple(about["notices"]),
            provenance=about["provenance"],
            _exact_means=about["exact_means"],
        )
    except (InputError, PermissionError):
        raise
    except Exception as error:  # a foreign or damaged file can fail at any point
        way_out = f"The file is damaged, or something else ({type(error).__name__})."
        if source.read_bytes()[:4] == b"PAR1":
            way_out = "It is a Parquet file: a sketch is read by cobpm.Sketch.load."
        raise bad(
            "path", "load", "name a file that Posterior.save wrote", str(source), way_out
        ) from error


def _work_out_means(post: Posterior) -> None:
    """Let a posterior of two sets remember the exact means in its summary and near it.

    The recursion that knows them is not saved. Other means of a loaded posterior are averaged over
    its draws.
    """
    if len(post.names) == 2:
        for name in (*SUMMARY, "squared_hellinger"):
            if parse(name, "save").mean_exists(post.model.least_pseudo_count):
                post.estimate(name, read_out="mean")


def to_datatree(post: Posterior) -> xr.DataTree:
    """The draws of l and of the summary's divergences, with dimensions chain and draw."""
    try:
        import xarray as xr
    except ImportError as error:
        raise ImportError("to_datatree() needs xarray: pip install cobpm[xarray]") from error

    chains = post.report.chains
    dims = ("chain", "draw")
    values: dict[str, Any] = {"leaves": post.leaves}
    if len(post.names) == 2:
        values |= {name.replace(":", "_"): post.draws(name) for name in SUMMARY}
    shaped = {name: (dims, np.asarray(drawn).reshape(chains, -1)) for name, drawn in values.items()}
    draws = len(post.partitions) // chains
    coordinates = {"chain": np.arange(chains), "draw": np.arange(draws)}
    attributes = {
        "created_at": post.provenance["created"],
        "inference_library": "cobpm",
        "inference_library_version": post.provenance["cobpm"],
        "engine": post.report.engine,
        "provenance": json.dumps(post.provenance),
    }
    log_weight = post.model.log_weights(post.partitions).reshape(chains, -1)
    return xr.DataTree.from_dict(
        {
            "/posterior": xr.Dataset(shaped, coords=coordinates, attrs=attributes),
            "/sample_stats": xr.Dataset(
                {"lp": (dims, log_weight)}, coords=coordinates, attrs=attributes
            ),
        }
    )

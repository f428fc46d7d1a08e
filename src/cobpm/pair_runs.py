"""A posterior of its own for every pair of sets: many small runs that can be resumed.

What a pair comes out as depends on its two samples, the settings and the seed alone: not on the
other sets, on the order of the sets, on the number of threads or on an interrupt in between. So a
run can be continued, and sets can be added to it later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cobpm.arrays import FloatArray
from cobpm.pairs import Question, pair_draws, pair_estimate
from cobpm.posterior import Posterior
from cobpm.progress import Progress
from cobpm.samples import Samples, Seen, bad
from cobpm.sketched import Sketched
from cobpm.threads import one_thread, thread_count

FORMAT = 1

# Fits one pair: samples of two sets, a seed, and whom to report to.
FitPair = Callable[[Samples | Sketched, np.random.SeedSequence, Progress], Posterior]
Key = tuple[str, str]  # fingerprints of the two samples, in their order


@dataclass(frozen=True)
class Answer:
    """What is kept of a pair: (estimate, low, high) from the first set to the second, and back."""

    there: tuple[float, float, float]
    back: tuple[float, float, float]
    warnings: tuple[str, ...] = ()


class Stopped(Exception):
    """Raised inside the workers when the user has had enough."""


@dataclass(frozen=True)
class Pairs:
    """All pairs of some samples, and how each is worked out."""

    samples: Samples | Sketched
    question: Question
    seed: int
    fit: FitPair
    prints: tuple[str, ...]  # fingerprints of the samples

    @classmethod
    def of(cls, samples: Samples | Sketched, question: Question, seed: int, fit: FitPair) -> Pairs:
        """Take the fingerprints."""
        return cls(samples, question, seed, fit, tuple(map(fingerprint, samples.values)))

    def posterior(self, i: int, j: int, progress: Progress = lambda stage, done: None) -> Posterior:
        """The posterior of two sets, which does not depend on which of them comes first."""
        i, j = self._ordered(i, j)
        pair = self.samples.only(i, j)
        words = [int(self.prints[k][:16], 16) for k in (i, j)]
        return self.fit(pair, np.random.SeedSequence([self.seed, *words]), progress)

    def key(self, i: int, j: int) -> Key:
        """What the answer for a pair is filed under."""
        i, j = self._ordered(i, j)
        return self.prints[i], self.prints[j]

    def answer(self, i: int, j: int, progress: Progress) -> Answer:
        """Work out one pair, in this thread."""
        with one_thread():
            i, j = self._ordered(i, j)
            post = self.posterior(i, j, progress)
            self.question.check_mean(post)
            there = self._read(post, i, j)
            back = there if self.question.symmetric else self._read(post, j, i)
        return Answer(there, back, post.report.warnings)

    def tables(self, answers: Mapping[Key, Answer]) -> FloatArray:
        """Estimates, lower and upper ends as matrices, (3, S, S); NaN where there is no answer."""
        sets = len(self.prints)
        found = np.full((3, sets, sets), np.nan)
        found[:, range(sets), range(sets)] = 0.0
        for i, j in combinations(range(sets), 2):
            if (answer := answers.get(self.key(i, j))) is not None:
                a, b = self._ordered(i, j)
                found[:, a, b], found[:, b, a] = answer.there, answer.back
        return found

    def warnings(self, answers: Mapping[Key, Answer]) -> tuple[str, ...]:
        """One sentence about all pairs that had something to say, with the first one's words."""
        warned = [
            (pair, answer.warnings[0])
            for pair in combinations(range(len(self.prints)), 2)
            if (answer := answers.get(self.key(*pair))) is not None and answer.warnings
        ]
        if not warned:
            return ()
        total = len(self.prints) * (len(self.prints) - 1) // 2
        first, second = (self.samples.names[k] for k in warned[0][0])
        return (
            f"{len(warned):,} of {total:,} pairs need care. The first, '{first}' and '{second}': "
            f"{warned[0][1]}",
        )

    def _ordered(self, i: int, j: int) -> tuple[int, int]:
        return (i, j) if (self.prints[i], i) <= (self.prints[j], j) else (j, i)

    def _read(self, post: Posterior, i: int, j: int) -> tuple[float, float, float]:
        first, second = self.samples.names[i], self.samples.names[j]
        drawn = pair_draws(post, self.question, first, second)
        low, high = np.quantile(drawn, post.tails(self.question.level, 0, 1)).tolist()
        return pair_estimate(post, self.question, first, second), low, high


def fingerprint(values: NDArray[Any]) -> str:
    """A hash of one sample's values in their order."""
    return hashlib.sha256(np.ascontiguousarray(values).data).hexdigest()


def run(
    pairs: Pairs,
    answers: dict[Key, Answer],
    keep: Callable[[Key, Answer], None],
    progress: Progress | None,
) -> None:
    """Add the answers that are missing, a pair per thread, and keep each as it comes.

    An interrupt stops the pairs under way at once and is passed on.
    """
    wanted = {pairs.key(i, j): (i, j) for i, j in combinations(range(len(pairs.prints)), 2)}
    total = len(wanted)
    todo = [(key, pair) for key, pair in wanted.items() if key not in answers]
    done, stopped = total - len(todo), False

    def listen(stage: str, fraction: float) -> None:
        if stopped:
            raise Stopped

    def report() -> None:
        if progress is not None:
            progress(f"{done:,} of {total:,} pairs", done / total)

    report()
    queue: Iterator[tuple[Key, tuple[int, int]]] = iter(todo)
    under_way: dict[Future[Answer], Key] = {}
    workers = thread_count()
    with ThreadPoolExecutor(workers) as pool:
        try:
            while True:
                # A few ahead of the workers: enough to keep them busy, little to give up.
                while len(under_way) < 2 * workers and (entry := next(queue, None)) is not None:
                    key, (i, j) = entry
                    under_way[pool.submit(pairs.answer, i, j, listen)] = key
                if not under_way:
                    return
                finished, _ = wait(under_way, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in finished:
                    key = under_way.pop(future)
                    answers[key] = future.result()
                    keep(key, answers[key])
                    done += 1
                report()
        except BaseException:
            stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise


# --- the file that a run can be continued from ---------------------------------------------------


@contextmanager
def checkpoint(
    path: Any, settings: Mapping[str, Any], seed: int | None
) -> Iterator[tuple[int, dict[Key, Answer], Callable[[Key, Answer], None]]]:
    """Open or create a file of answers: its seed, what it holds, and how to add to it.

    The first line says what the answers are answers to, each further line is one of them. Lines
    are added as pairs are finished; a last line cut off by a crash is dropped.

    Args:
        path: The file, or None for none.
        settings: What the answers depend on besides the samples and the seed.
        seed: None for that of the file, or a new one.
    """
    fresh = seed if seed is not None else int(np.random.default_rng().integers(2**63))
    if path is None:
        yield fresh, {}, lambda key, answer: None
        return
    target = _as_file(path)
    if str(settings["divergence"]).startswith("phi"):
        rule = "go with a divergence that has a name"
        raise bad("checkpoint", "pairwise", rule, Seen("a function"), "Leave checkpoint out.")
    # Arrays and NumPy's numbers become lists and plain ones.
    settings = json.loads(json.dumps(settings, default=lambda value: np.asarray(value).tolist()))
    if target.exists() and target.stat().st_size:
        fresh, answers, whole = _read(target, settings, seed)
        file = target.open("r+", encoding="utf-8")
        file.truncate(whole)
        file.seek(whole)
    else:
        answers, file = {}, target.open("w", encoding="utf-8")
        _write(file, {"cobpm_pairs": FORMAT, "seed": fresh, "settings": settings})
    with file:
        yield fresh, answers, lambda key, answer: _write(file, {"key": key} | asdict(answer))


def _write(file: IO[str], entry: Mapping[str, Any]) -> None:
    file.write(json.dumps(entry) + "\n")
    file.flush()


def _as_file(path: Any) -> Path:
    try:
        target = Path(path)
    except TypeError:
        raise bad("checkpoint", "pairwise", "be the path of a file", path) from None
    if target.is_dir():
        raise bad("checkpoint", "pairwise", "name a file", Seen(f"the folder '{target}'"))
    if not target.parent.is_dir():
        rule = "lie in a folder that exists"
        raise bad("checkpoint", "pairwise", rule, str(target), "Create the folder first.")
    return target


def _read(
    target: Path, settings: Mapping[str, Any], seed: int | None
) -> tuple[int, dict[Key, Answer], int]:
    """The seed and the answers of a file that belongs to these settings, and its whole length."""
    answers: dict[Key, Answer] = {}
    text = target.read_bytes()
    whole = text.rfind(b"\n") + 1
    try:
        head, *lines = (json.loads(line) for line in text[:whole].splitlines())
        if head["cobpm_pairs"] != FORMAT:
            raise ValueError(f"format {head['cobpm_pairs']}")
        for line in lines:
            answers[(line["key"][0], line["key"][1])] = Answer(
                tuple(line["there"]), tuple(line["back"]), tuple(line["warnings"])
            )
        theirs, their_seed = dict(head["settings"]), int(head["seed"])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        rule = "name a file that pairwise() wrote, or a new one"
        seen = Seen(f"'{target}', which holds something else ({type(error).__name__})")
        raise bad("checkpoint", "pairwise", rule, seen, "Choose another name.") from None
    differ = [
        f"{name}={theirs.get(name)!r} in the file and {settings.get(name)!r} here"
        for name in sorted(settings.keys() | theirs.keys())
        if settings.get(name) != theirs.get(name)
    ]
    if seed is not None and seed != their_seed:
        differ.append(f"seed {their_seed} in the file and {seed} here")
    if differ:
        raise bad(
            "checkpoint",
            "pairwise",
            "belong to the same question",
            Seen("; ".join(differ)),
            "Ask the same as before, or choose another name for the file.",
        )
    return their_seed, answers, whole

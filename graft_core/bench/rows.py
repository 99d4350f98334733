"""The rows of `graft bench`: what is measured, the target of each, and which of them `--check` insists on."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from graft_core.bench.measure import best, in_child
from graft_core.bench.synthetic import write_parquet
from graft_core.errors import InputError

BYTES_ON_DISK: Final = 0.1  # of a step's text, zstd-compressed Parquet, generously
STEP_ON_DISK: Final = 60
MEMORY_OF_STEP: Final = 700  # resident bytes per step of 200-byte observations while a Parquet file is analysed
GROWTH: Final = 12.0
CLOCKS: Final = {"wall": "by the wall clock", "cpu": "in CPU time", "user": "in user mode"}
ALLOWED_MEMORY: Final = (3.0, 300e6)  # times the decoded text, plus


@dataclass(frozen=True)
class Sizes:
    """How large the batches are."""

    main: int = 1_000_000
    long_texts: int = 250_000
    growth: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)
    batches: int = 25
    repeats: int = 3


QUICK: Final = Sizes(main=20_000, long_texts=5_000, growth=(4_000, 40_000), batches=3, repeats=1)


@dataclass(frozen=True)
class Peer:
    """What another way of doing the same work took, and how many times ours that is (by CPU time)."""

    name: str
    seconds: float
    ratio: float
    note: str = ""


@dataclass(frozen=True)
class Line:
    """One measured line: seconds by the wall clock and of CPU time, the target, peers, peak memory.

    For lines whose figure is no time (growth), `figure` holds it. `met`: None where there is no target.
    """

    row: str
    work: str
    wall: float | None = None
    cpu: float | None = None
    target: float | None = None
    figure: float | None = None
    met: bool | None = None
    peers: tuple[Peer, ...] = ()
    peak: int | None = None
    peak_allowed: float | None = None
    notes: tuple[str, ...] = ()
    checked: bool = False

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def missed(self) -> bool:
        """Whether `--check` has to fail for this line."""
        return self.checked and self.met is False


@dataclass
class Bench:
    """One run: where files go, how large batches are, and Parquet measurements that two rows share."""

    folder: Path
    sizes: Sizes
    files: dict[tuple[int, int], tuple[Path, int]] = field(default_factory=dict)
    measured: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)

    def parquet(self, n_steps: int, text_bytes: int, repeats: int) -> dict[str, Any]:
        """The best of some runs of `tasks.parquet`, each in a process of its own, with the bytes of text in the file."""
        key = (n_steps, text_bytes)
        if key not in self.measured:
            path = self.folder / f"{n_steps}-{text_bytes}.parquet"
            self._room(n_steps, text_bytes)
            text = write_parquet(path, n_steps, text_bytes)
            try:
                runs = [in_child("parquet", path=str(path)) for _ in range(repeats)]
            finally:
                path.unlink(missing_ok=True)
            clocks = {part: best(run[part] for run in runs) for part in ("ours", "load", "analysis")}
            self.measured[key] = {**runs[0], **clocks, "text": text, "peak": max(run["peak"] for run in runs)}
        return self.measured[key]

    def _room(self, n_steps: int, text_bytes: int) -> None:
        need = n_steps * (STEP_ON_DISK + BYTES_ON_DISK * text_bytes)
        free = shutil.disk_usage(self.folder).free
        if free < need:
            raise InputError(
                f"{self.folder}: {need / 1e6:.0f} MB are needed for a batch of {n_steps:,} steps, {free / 1e6:.0f} MB "
                "are free; TMPDIR names another folder"
            )
        memory = _free_memory()
        need = n_steps * MEMORY_OF_STEP * max(1.0, text_bytes / 200)
        if memory is not None and memory < need:
            raise InputError(
                f"a batch of {n_steps:,} steps takes up to {need / 1e9:.1f} GB of memory, {memory / 1e9:.1f} GB are free"
            )


def _free_memory() -> int | None:
    """Bytes that programs can still have, where the system says."""
    try:
        with open("/proc/meminfo", encoding="ascii") as stream:
            return next(int(line.split()[1]) * 1024 for line in stream if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None


def judged(spent: dict[str, float]) -> float:
    """The smaller of wall and CPU time: on a busy machine the wall clock counts what others did meanwhile."""
    return min(spent["wall"], spent["cpu"])


def _line(row: str, work: str, spent: dict[str, float], target: float | None, **more: Any) -> Line:
    met = None if target is None else judged(spent) <= target
    return Line(row, work, spent["wall"], spent["cpu"], target, met=met, **more)


def _peer(name: str, peer: dict[str, float], ours: dict[str, float], note: str = "") -> Peer:
    return Peer(name, peer["cpu"], peer["cpu"] / ours["cpu"], note)


def keys(bench: Bench) -> Iterator[Line]:
    """State keys from Arrow strings in memory."""
    for n, size, target in ((bench.sizes.main, 200, 0.4), (bench.sizes.long_texts, 2000, None)):
        found = in_child("keys", n_steps=n, text_bytes=size, repeats=bench.sizes.repeats)
        peer = _peer("pandas object factorize", found["pandas"], found["ours"], "" if found["agrees"] else "KEYS DIFFER")
        yield _line("keys", f"state keys, {found['n']:,} steps of {size:,} bytes", found["ours"], target, peers=(peer,))


def values(bench: Bench) -> Iterator[Line]:
    """Exact node values, graph given."""
    found = in_child("values", n_steps=bench.sizes.main, repeats=bench.sizes.repeats)
    ours = found["ours"]
    peers = (
        _peer("networkx sweeps", found["networkx"], ours, f"{found['networkx_tasks']} of {found['groups']:,} tasks, scaled"),
        _peer("scipy sparse sweeps", found["sparse"], ours, f"within {found['error']:.0e}"),
    )
    work = f"exact values, {found['n']:,} steps, {found['nodes']:,} states, {found['groups']:,} tasks"
    yield _line("values", work, ours, 0.1, peers=peers)


def estimator(bench: Bench) -> Iterator[Line]:
    """One estimator, graph and values given; the slowest of five counts."""
    found = in_child("estimator", n_steps=bench.sizes.main, repeats=bench.sizes.repeats)
    each = found["estimators"]
    slowest = max(each, key=lambda name: judged(each[name]))
    notes = ("; ".join(f"{name} {judged(spent) * 1e3:.1f} ms" for name, spent in each.items()),)
    yield _line("estimator", f"one estimator ({slowest}), {found['n']:,} steps", each[slowest], 0.1, notes=notes)


def parquet(bench: Bench) -> Iterator[Line]:
    """Parquet to five estimators, with peak memory."""
    for n, size, target in ((bench.sizes.main, 200, 3.0), (bench.sizes.long_texts, 2000, None)):
        found = bench.parquet(n, size, bench.sizes.repeats)
        allowed = ALLOWED_MEMORY[0] * found["text"] + ALLOWED_MEMORY[1]
        notes = (
            f"reading {judged(found['load']):.2f} s, keys to credit {judged(found['analysis']):.2f} s; "
            f"{found['text'] / 1e6:.0f} MB of text; {found['peak_before'] / 1e6:.0f} MB before the file was opened",
            *(() if found["peak"] <= allowed else ("MORE MEMORY THAN ALLOWED",)),
        )
        yield _line(
            "parquet", f"Parquet to five estimators, {found['n']:,} steps of {size:,} bytes", found["ours"], target,
            peak=found["peak"], peak_allowed=allowed, notes=notes, checked=target is not None,
        )  # fmt: skip


def train(bench: Bench) -> Iterator[Line]:
    """A training batch in memory, Arrow columns to five estimators."""
    found = in_child("train", repeats=bench.sizes.batches)
    peer = _peer("GiGPO alone, plain Python", found["gigpo"], found["ours"], f"credit within {found['error']:.0e}")
    quickest = f"median of {found['batches']} different batches; the quickest took {judged(found['best']) * 1e3:.1f} ms"
    work = f"training batch 16 x 8 x 50 ({found['n']:,} steps) to five estimators"
    yield _line("train", work, found["ours"], 0.02, peers=(peer,), notes=(quickest,), checked=True)


def growth(bench: Bench) -> Iterator[Line]:
    """Parquet to five estimators at sizes ten times apart.

    Judged by the clock that grew least, as a batch that grows faster than its size does so by every clock: the wall clock
    also counts other programs, and the kernel's time for fresh memory depends on the host of a virtual machine.
    """
    before: dict[str, float] = {}
    for n in bench.sizes.growth:
        found = bench.parquet(n, 200, 1 if n > bench.sizes.main else bench.sizes.repeats)
        ours, allowed = found["ours"], ALLOWED_MEMORY[0] * found["text"] + ALLOWED_MEMORY[1]
        grew = {clock: ours[clock] / before[clock] for clock in ours} if before else {}
        factor = min(grew.values()) if grew else None
        notes = [f"{ours['user']:.2f} s of the CPU time in user mode, the rest in the kernel"]
        if grew:
            each = (f"{grew[clock]:.1f}x {words}" for clock, words in CLOCKS.items())
            notes.append(f"took {', '.join(each)}")
        yield Line(
            "growth", f"Parquet to five estimators, {found['n']:,} steps", ours["wall"], ours["cpu"],
            target=GROWTH if grew else None, figure=factor, met=None if factor is None else factor <= GROWTH,
            peak=found["peak"], peak_allowed=allowed, checked=bool(grew),
            notes=(*notes, *(() if found["peak"] <= allowed else ("MORE MEMORY THAN ALLOWED",))),
        )  # fmt: skip
        before = ours


def start(bench: Bench) -> Iterator[Line]:
    """A process's first training batch, from import to credit, without and with the compiled cache of an earlier one."""
    cache = {"NUMBA_CACHE_DIR": str(bench.folder / "compiled")}
    spent: list[float] = []
    for which in ("the first process", "the second process"):
        found = in_child("start", cache)
        notes = [f"{found['compiled']} functions compiled"]
        if spent:
            notes.append(f"{spent[0] / found['wall']:.0f} times quicker than the first")
        spent.append(found["wall"])
        met = found["compiled"] == 0 if len(spent) == 2 else None
        yield Line("start", f"import to first credit, {which}", found["wall"], met=met, notes=tuple(notes))


def imports(bench: Bench) -> Iterator[Line]:
    """`import graft_core`."""
    yield _line("import", "import graft_core", in_child("bare_import")["ours"], 0.3)


def findings(bench: Bench) -> Iterator[Line]:
    """Findings of a training batch with shuffled outcomes, as the app's first page asks for them."""
    found = in_child("found")
    work = f"findings of {found['n']:,} steps with {found['shuffles']} shuffles"
    yield _line("findings", work, found["ours"], 2.0)


ROWS: Final[dict[str, Callable[[Bench], Iterator[Line]]]] = {
    "keys": keys, "values": values, "estimator": estimator, "parquet": parquet, "train": train, "growth": growth,
    "findings": findings, "import": imports, "start": start,
}  # fmt: skip
"""What can be asked for with `--only`, in the order it is measured."""


def measure(names: list[str], sizes: Sizes) -> Iterator[Line]:
    """Measure the named rows one after the other, in a temporary folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="graft-bench-") as folder:
        bench = Bench(Path(folder), sizes)
        for name in names:
            for line in ROWS[name](bench):
                yield replace(line, target=None, met=None, checked=False) if sizes == QUICK else line


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    import platform
    from importlib.metadata import version

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    versions = {name: version(name) for name in ("numpy", "numba", "pyarrow", "pandas")}
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": load, "python": platform.python_version(), "system": platform.system(), **versions,
    }  # fmt: skip

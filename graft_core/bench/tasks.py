"""The measurements, each meant for a process of its own: warm the compiled code on a small batch, then time fresh ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from graft_core.bench import synthetic
from graft_core.bench.measure import Spent, best, peak_memory, timed

STARTED: Final = time.perf_counter()
FIVE: Final = ("grpo", "gigpo", "graft_td", "path_gae", "graft")
WARM_TASKS: Final = 4
NETWORKX_TASKS: Final = 10


def _table(n_steps: int, text_bytes: int, seed: int = 0) -> pa.Table:
    return pa.concat_tables(synthetic.tables(n_steps, text_bytes, seed))


def five_estimators(batch: Any) -> dict[str, Any]:
    """Keys, graph, values and five estimators on a batch; what a trainer or a report needs."""
    from graft_core.credit import estimate
    from graft_core.credit.estimate import graph_of

    graph = graph_of(batch)
    return {name: estimate(batch, name, graph=graph) for name in FIVE}


def _columns_to_credit(table: pa.Table) -> dict[str, Any]:
    return five_estimators(synthetic.batch_of(table))


def warm_up() -> None:
    """Load the libraries and the compiled code on a batch of four tasks that is thrown away."""
    _columns_to_credit(_table(WARM_TASKS * synthetic.STEPS_OF_TASK, 50, seed=99))


def keys(n_steps: int, text_bytes: int, repeats: int = 3) -> dict[str, Any]:
    """Arrow strings in memory to one integer per step: as the reader codes texts, then the rule `exact`."""
    from graft_core.bench.peers import pandas_factorize
    from graft_core.formats.canonical_parquet import _Texts
    from graft_core.states import state_keys

    warm_up()
    table = _table(n_steps, text_bytes)
    whole = synthetic.batch_of(table.drop_columns(["observation"]).append_column("observation", table["next_observation"]))
    strings = table["observation"]

    def ours() -> Any:
        coded = _Texts()
        codes = coded.column(strings)
        distinct, number_of = coded.distinct()
        ids = pa.array(number_of[codes])
        steps = whole.steps.set_column(whole.steps.column_names.index("observation"), "observation", ids)
        texts = pa.table({"id": pa.array(np.arange(len(distinct), dtype=np.int32)), "text": distinct})
        return state_keys(type(whole)(whole.rollouts, steps, texts))[0]

    spent = [timed(ours) for _ in range(repeats)]
    objects = strings.to_pylist()
    peer, codes = timed(pandas_factorize, objects)
    same = bool(np.array_equal(spent[0][1], codes))
    return {"ours": _best([s for s, _ in spent]), "pandas": peer.as_dict(), "agrees": same, "n": len(codes)}


def values(n_steps: int, gamma: float = 0.99, repeats: int = 3, peers: bool = True) -> dict[str, Any]:
    """Exact values of a graph that is there, and what repeated sweeps take for the same."""
    from graft_core.bench.peers import networkx_values, sparse_sweeps
    from graft_core.graph import build_graph
    from graft_core.values import solve_values

    warm_up()
    batch = synthetic.batch_of(_table(n_steps, 50))
    spent, v = [], np.zeros(0)
    for _ in range(repeats):
        graph = build_graph(batch)
        took, solved = timed(solve_values, graph, gamma=gamma)
        spent.append(took)
        v = solved.v
    found = {"ours": _best(spent), "n": batch.n_steps, "nodes": graph.n_nodes, "groups": batch.n_groups}
    if not peers:
        return found
    sparse, again = timed(sparse_sweeps, graph, gamma)
    some = min(NETWORKX_TASKS, batch.n_groups)
    nets = [graph.to_networkx(group) for group in range(some)]
    net, by_node = timed(networkx_values, nets, gamma)
    scale = batch.n_groups / some
    error = max([float(np.abs(again - v).max()), *(abs(v[u] - x) for u, x in by_node.items())])
    scaled = {"wall": net.wall * scale, "cpu": net.cpu * scale}
    return {**found, "sparse": sparse.as_dict(), "networkx": scaled, "networkx_tasks": some, "error": error}


def estimator(n_steps: int, repeats: int = 3) -> dict[str, Any]:
    """Each of the five estimators with graph and values given: the slowest counts."""
    from graft_core.credit import estimate
    from graft_core.credit.estimate import graph_of
    from graft_core.values import solve_values

    warm_up()
    batch = synthetic.batch_of(_table(n_steps, 50))
    spent: dict[str, list[Spent]] = {name: [] for name in FIVE}
    for _ in range(repeats):
        own = synthetic.fresh(batch)
        graph = graph_of(own)
        solved = solve_values(graph)
        for name in FIVE:
            given = {"values": solved} if name in ("graft_td", "path_gae", "graft") else {}
            spent[name].append(timed(estimate, own, name, graph=graph, **given)[0])
    return {"estimators": {name: _best(times) for name, times in spent.items()}, "n": batch.n_steps}


def train(n_tasks: int = 16, repeats: int = 25, text_bytes: int = 200, peer: bool = True) -> dict[str, Any]:
    """Training batches as Arrow columns in memory to five estimators; every batch is another one. Median and best."""
    from graft_core.bench.peers import plain_gigpo

    warm_up()
    spent: list[Spent] = []
    for seed in range(repeats):
        table = _table(n_tasks * synthetic.STEPS_OF_TASK, text_bytes, seed)
        took, credit = timed(_columns_to_credit, table)
        spent.append(took)
    ours = {clock: float(np.median([s.as_dict()[clock] for s in spent])) for clock in ("wall", "cpu")}
    found: dict[str, Any] = {"ours": ours, "best": _best(spent), "n": table.num_rows, "batches": repeats}
    if peer:
        words = [table[name].to_pylist() for name in ("group_id", "rollout_id", "observation")]
        plain, answer = timed(plain_gigpo, *words, table["reward"].to_numpy(), table["outcome"].to_numpy())
        found |= {"gigpo": plain.as_dict(), "error": float(np.abs(answer - credit["gigpo"]).max())}
    return found


def parquet(path: str) -> dict[str, Any]:
    """A Parquet file to five estimators, with the largest memory this process has had."""
    from graft_core.formats import load

    warm_up()
    before = peak_memory()
    took, batch = timed(load, path)
    rest, _ = timed(five_estimators, batch)
    total = {clock: took.as_dict()[clock] + rest.as_dict()[clock] for clock in took.as_dict()}
    return {
        "ours": total, "load": took.as_dict(), "analysis": rest.as_dict(), "n": batch.n_steps,
        "rollouts": batch.n_rollouts, "groups": batch.n_groups, "peak": peak_memory(), "peak_before": before,
    }  # fmt: skip


def start() -> dict[str, Any]:
    """The first training batch of a process, from import to credit, and how many functions had to be compiled for it."""
    _columns_to_credit(_table(16 * synthetic.STEPS_OF_TASK, 200))
    return {"wall": time.perf_counter() - STARTED, "compiled": _compiled()}


def _compiled() -> int:
    """Functions that numba compiled in this process instead of taking them from its cache on disk."""
    import sys

    from numba.core.dispatcher import Dispatcher

    loaded = [m for name, m in sys.modules.items() if name.startswith("graft_core.") and name.endswith("_kernels")]
    ours = {id(f): f for m in loaded for f in vars(m).values() if isinstance(f, Dispatcher)}
    return sum(sum(f.stats.cache_misses.values()) for f in ours.values())


def bare_import() -> dict[str, Any]:
    """`import graft_core` in a process of its own, the best of five."""
    import subprocess
    import sys

    program = "import time; t = time.perf_counter(); import graft_core; print(time.perf_counter() - t)"
    run = [sys.executable, "-c", program]
    found = [float(subprocess.run(run, capture_output=True, check=True).stdout) for _ in range(5)]
    return {"ours": {"wall": min(found), "cpu": min(found)}}


def found(n_tasks: int = 16, shuffles: int = 200) -> dict[str, Any]:
    """Findings of a training batch with chance and certainty, on a batch not looked at before."""
    from graft_core.insight import findings

    warm_up()
    findings(synthetic.batch_of(_table(WARM_TASKS * synthetic.STEPS_OF_TASK, 200, seed=98)), shuffles=8)
    batch = synthetic.batch_of(_table(n_tasks * synthetic.STEPS_OF_TASK, 200))
    took, seen = timed(findings, batch, shuffles=shuffles)
    return {"ours": took.as_dict(), "n": batch.n_steps, "shuffles": shuffles, "chance": seen.chance is not None}


def _best(spent: list[Spent]) -> dict[str, float]:
    return best(s.as_dict() for s in spent)


TASKS: Final[dict[str, Callable[..., dict[str, Any]]]] = {
    task.__name__: task for task in (keys, values, estimator, train, parquet, start, bare_import, found)
}

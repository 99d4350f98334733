"""Puts 50 small deliberate faults into `credit/` and `values/`, one at a time, and counts how many the tests catch.

    python tests/mutate.py [--jobs N] [--only 3,17,40-45] [--list] [--check]

Each fault is a replacement of text that stands exactly once in its file. It is made in a copy of the package in a
temporary folder, never here. A fault counts as caught when a test fails, an import breaks or the tests hang. Exit status
0 when at least 45 of 50 are caught (with --only: all of the chosen).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
NEEDED = 45
LONGEST = 300
TESTS = ("credit", "values", "test_properties.py", "test_graph.py")


class Fault(NamedTuple):
    """In `file` (below graft_core) `old` becomes `new`."""

    file: str
    old: str
    new: str


FAULTS = (
    # outcome credit
    Fault(
        "credit/_episode.py",
        "[group] == 1\n    return np.where(alone, outcome if",
        "[group] == 2\n    return np.where(alone, outcome if",
    ),
    Fault("credit/_episode.py", "raw = outcome_of_step if", "raw = 1.0 if"),
    Fault("credit/_segments.py", "    return np.where(flat(x, group, n_groups)[group], 0.0, centred)", "    return centred"),
    Fault("credit/_segments.py", "(counts(node, n_nodes) == 1)[node]", "(counts(node, n_nodes) <= 2)[node]"),
    Fault("credit/_segments.py", "size <= SIGN_TOLERANCE", "size <= 1e-6"),
    Fault("credit/_kernels.py", "> absolute + relative * max", "> relative * max"),
    Fault("credit/_kernels.py", "scale[g] / (n[g] - ddof)", "scale[g] / n[g]"),
    Fault("credit/_kernels.py", "mean[g] /= max(n[g], 1)", "mean[g] /= n[g] + 1"),
    Fault("credit/rloo.py", " * n / np.maximum(n - 1, 1)", ""),
    Fault("credit/reinforce_pp_baseline.py", "[group] > 1", "[group] > 0"),
    Fault("credit/opo.py", "weights=length * outcome", "weights=outcome"),
    Fault("credit/maxrl.py", "np.divide(success - rate, rate,", "np.divide(success - rate, 0.5 + 0 * rate,"),
    Fault("credit/grpo_step_index.py", "* width + batch.rank)", "* width + batch.remaining)"),
    # returns and nodes
    Fault("credit/_returns.py", "powers[inputs.batch.remaining]", "powers[inputs.batch.rank]"),
    Fault("credit/_returns.py", "return remaining_rewards(inputs, gamma)", "return remaining_rewards(inputs, 1.0)"),
    Fault("credit/_penalty.py", "return ~said[inputs.batch.order]", "return ~said"),
    Fault("credit/_penalty.py", "quantity - size * invalid(inputs)", "quantity - invalid(inputs)"),
    Fault("credit/gigpo.py", 'step_part *= inputs["omega"]', "step_part *= 1.0"),
    Fault("credit/rtmc.py", "of_action - of_node", "of_action - returns"),
    Fault("credit/salt.py", "inputs.split_graph", "inputs.graph"),
    Fault("credit/_kernels.py", "rank[at[j]] >= level - 1", "rank[at[j]] >= level"),
    Fault("credit/hgpo.py", "(level + 1.0) **", "(level + 0.0) **"),
    Fault("credit/_hops.py", "[inputs.rollout]] + 1", "[inputs.rollout]]"),
    Fault("credit/_hops.py", "use = inputs.known & (to >= 0)", "use = to >= 0"),
    Fault("credit/rewardflow.py", "np.where(distance < 0, 0.0,", "np.where(distance < 0, 1.0,"),
    Fault("credit/bepo_gated.py", "used = graph.count_known > 0", "used = graph.count > 0"),
    Fault("credit/sas.py", "batch.success[inputs.rollout] == 0", "batch.success[inputs.rollout] == 1"),
    Fault("credit/task_norm.py", 'for name in ("gamma", "lam")', 'for name in ("lam",)'),
    Fault("credit/gae_critic.py", "cut = batch.truncated & ~batch.terminated", "cut = batch.truncated"),
    Fault("credit/gae_critic.py", "gamma * ahead - value", "ahead - value"),
    # graph credit
    Fault("credit/_td.py", "    td *= values.gamma\n", ""),
    Fault("credit/_td.py", "np.where(graph.count_known > 0, td, 0.0)", "np.where(graph.count > 0, td, 0.0)"),
    Fault("credit/_td.py", 'if inputs["reach"] == "instances" else 1', 'if inputs["reach"] != "instances" else 1'),
    Fault(
        "credit/_td.py",
        'probability = edge_weights(graph, "visits")',
        "probability = edge_weights(graph, inputs.values.weighting)",
    ),
    Fault("credit/_kernels.py", "running = x[p] + discount * running", "running = x[p] + running"),
    Fault("credit/_kernels.py", "(n_again == n_here and n_there == n_here)", "(n_again == n_here)"),
    # the door
    Fault("credit/estimate.py", "rows: FloatArray = batch.to_rows(credit)", "rows: FloatArray = credit"),
    Fault("credit/estimate.py", "return own", "return dict(given)"),
    # values
    Fault(
        "values/system.py", "np.maximum(graph.visits_known[graph.edge_src], 1)", "np.maximum(graph.visits[graph.edge_src], 1)"
    ),
    Fault("values/system.py", "graph.pair_node[pairs > 0]", "graph.pair_node[pairs >= 0]"),
    Fault(
        "values/system.py",
        "keep = graph.visits_known / (graph.visits_known + prior)",
        "keep = graph.visits / (graph.visits + prior)",
    ),
    Fault(
        "values/system.py",
        "constant=sums(graph.edge_src, weight * reward, graph.n_nodes)",
        "constant=sums(graph.edge_src, reward, graph.n_nodes)",
    ),
    Fault("values/_kernels.py", "on_stack[v] and index[v] < low[u]", "index[v] < low[u]"),
    Fault("values/_kernels.py", "a[i, j] -= gamma * w", "a[i, j] -= w"),
    Fault(
        "values/_kernels.py", "v[u] = total / (1.0 - gamma * own)\n            continue", "v[u] = total\n            continue"
    ),
    Fault("values/_kernels.py", "constant, gamma, v, 1e-11, 50):", "constant, gamma, v, 1e-5, 50):"),
    Fault("values/_kernels.py", "hops[u] = hops[v] + 1", "hops[u] = hops[v] + 2"),
    Fault("values/_kernels.py", "if outside <= 1e-12:", "if outside < 0.0:"),
    Fault("values/sweeps.py", 'v.copy() if solver == "jacobi" else v', "v"),
    Fault("values/sweeps.py", "np.where(hops[nodes] < 0, graph.n_nodes, hops[nodes])", "hops[nodes]"),
)


def copy_of_the_project(to: Path) -> None:
    """The package and its tests, with the compiled kernels so that only what a fault touches is compiled anew."""
    for folder in ("graft_core", "tests/graft_core", "tests/vectors"):
        shutil.copytree(ROOT / folder, to / folder, copy_function=shutil.copy2)
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy2(ROOT / name, to / name)


def faulty(fault: Fault, project: Path) -> str:
    """The text of the fault's file with the fault in it."""
    text = (project / "graft_core" / fault.file).read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        raise SystemExit(f"{fault.file}: {fault.old!r} stands there {text.count(fault.old)} times, expected once")
    return text.replace(fault.old, fault.new)


def failing(project: Path) -> str:
    """The first test that fails in the project, or nothing."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "--timeout=100"]
    command += [f"tests/graft_core/{name}" for name in TESTS]
    env = {**os.environ, "PYTHONPATH": str(project)}
    try:
        done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return "the tests did not end"
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].split(" - ")[0] if lines else f"exit status {done.returncode}"


def caught_by(fault: Fault) -> str:
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        project = Path(folder)
        copy_of_the_project(project)
        (project / "graft_core" / fault.file).write_text(faulty(fault, project), encoding="utf-8")
        return failing(project)


def chosen(words: str) -> list[int]:
    """'3,17,40-45' as numbers from 1."""
    found: list[int] = []
    for word in filter(None, words.split(",")):
        first, _, last = word.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found or list(range(1, len(FAULTS) + 1))


def run(numbers: list[int], jobs: int = 1) -> int:
    """Tries the faults and prints one line each; returns how many were caught."""
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        copy_of_the_project(Path(folder))
        broken = failing(Path(folder))
        if broken:
            raise SystemExit(f"the tests fail without any fault: {broken}")
    caught, started = 0, time.monotonic()
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for number, found in zip(numbers, pool.map(lambda n: caught_by(FAULTS[n - 1]), numbers), strict=True):
            fault = FAULTS[number - 1]
            caught += bool(found)
            print(
                f"{number:3d} {'caught' if found else 'MISSED'}  {fault.file}: {fault.old!r} -> {fault.new!r}  {found}",
                flush=True,
            )
    print(f"{caught} of {len(numbers)} faults caught in {time.monotonic() - started:.0f} s")
    return caught


def main() -> int:
    parser = argparse.ArgumentParser(description="how many deliberate faults the tests catch")
    parser.add_argument("--jobs", type=int, default=1, help="faults tried at the same time (default 1)")
    parser.add_argument("--only", default="", help="numbers of faults, such as 3,17,40-45")
    parser.add_argument("--list", action="store_true", help="only list the faults")
    parser.add_argument("--check", action="store_true", help="only check that every fault still has a place")
    given = parser.parse_args()
    numbers = chosen(given.only)
    if given.check:
        for fault in FAULTS:
            faulty(fault, ROOT)
        print(f"{len(FAULTS)} faults fit")
        return 0
    if given.list:
        for number in numbers:
            print(f"{number:3d} {FAULTS[number - 1]}")
        return 0
    return 0 if run(numbers, given.jobs) >= (len(numbers) if given.only else NEEDED) else 1


if __name__ == "__main__":
    sys.exit(main())

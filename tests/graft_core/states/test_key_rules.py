"""Rules on keys: `actions`, `visited`, `prefix`, `action_set`, `guard`, and the content hashes they pass on."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk

import graft_core as gc
from graft_core.errors import UsageError
from graft_core.rollouts import RolloutBatch
from graft_core.states import compose, state_keys
from graft_core.states.base import step_positions

Row = dict[str, Any]
Past = list[tuple[str, str]]


def same_partition(left: list[Any], right: list[Any]) -> bool:
    """Whether two labellings put the same items together."""
    return len(set(zip(left, right, strict=True))) == len(set(left)) == len(set(right))


def brute(rows: list[Row], key: Callable[[Past, str], Any]) -> list[Any]:
    """key(what came before as (observation, action), the observation) of each step in row order, then of each final state."""
    paths: dict[Any, list[Row]] = {}
    for row in rows:
        paths.setdefault((row["group_id"], row["rollout_id"]), [])
        if row["step"] is not None:
            paths[row["group_id"], row["rollout_id"]].append(row)
    seen, finals = {}, []
    for path in paths.values():
        path.sort(key=lambda row: row["step"])
        past = [(row["observation"], row["action"]) for row in path]
        for t, row in enumerate(path):
            seen[id(row)] = key(past[:t], row["observation"])
        final = path[-1].get("next_observation") if path else None
        finals.append(None if final is None else key(past, final))
    return [seen[id(row)] for row in rows if row["step"] is not None] + finals


def found(batch: RolloutBatch, *specs: str) -> list[Any]:
    step, final = state_keys(batch, specs)
    return [*batch.to_rows(step).tolist(), *(None if k < 0 else k for k in final.tolist())]


RULES: dict[str, Callable[[Past, str], Any]] = {
    "actions:0": lambda past, o: o,
    "actions:1": lambda past, o: (o, [a for _, a in past[-1:]].__repr__()),
    "actions:3": lambda past, o: (o, tuple(a for _, a in past[-3:])),
    "prefix": lambda past, o: (o, tuple(past)),
    "visited:s1": lambda past, o: (o, any(p == "s1" for p, _ in past)),
    "visited:s*": lambda past, o: (o, bool(past)),
}


@pytest.mark.parametrize("spec", RULES)
@pytest.mark.parametrize("seed", range(4))
def test_against_dictionaries(spec: str, seed: int) -> None:
    rows = random_rows(seed, groups=3, no_final=0.3, empty=0.2, states=3)
    random.Random(seed).shuffle(rows)
    assert same_partition(found(batch_of(rows), spec), brute(rows, RULES[spec]))


def test_prefix_gives_a_tree() -> None:
    batch = batch_of(random_rows(7, states=2, rollouts=12))
    assert gc.describe(batch, ["prefix"])["graph"]["remerge_index"] == 0
    assert gc.describe(batch)["graph"]["remerge_index"] > 0


def test_visited_by_hash_is_visited_by_text() -> None:
    rows = random_rows(1)
    batch = batch_of(rows)
    keys = compose(batch, ["exact"])
    at = next(i for i, p in enumerate(batch.observation) if batch.text(int(p)) == "s2")
    word = f"#{int(keys.hashes[keys.codes[step_positions(batch)[at]]]):016x}"
    assert found(batch, f"visited:{word}") == found(batch, "visited:s2")
    # under a rule that parts s2, its hash is another one
    with pytest.raises(UsageError, match="no observation of these rollouts has that hash"):
        state_keys(batch, ["prefix", f"visited:{word}"])


def test_content_hashes_do_not_depend_on_the_batch() -> None:
    """The same rollouts with other ones around them have the same hashes, under every key rule."""
    rows = random_rows(3, groups=1)
    more = [dict(row, group_id="h", observation=row["observation"] + "!", action=row["action"] + "?") for row in random_rows(4)]
    small, large = batch_of(rows), batch_of(more + rows)
    for word in ("exact", "normalised+history:2", "actions:2", "prefix", "visited:s1", "guard:2", "history:1+actions:1"):
        specs = word.split("+")
        hashes = []
        for batch in (small, large):
            keys = compose(batch, specs)
            inside = np.array([batch.group_ids[g] == "g0" for g in batch.group[batch.step_rollout]])
            hashes.append(keys.hashes[keys.codes[step_positions(batch)]][inside])
            assert len(set(keys.hashes[np.unique(keys.codes)].tolist())) == np.unique(keys.codes).size
        assert np.array_equal(*hashes)


def test_action_set(tmp_path: Path) -> None:
    rows = walk("a", "S:x S:x S:x S:x T:x", 1.0, "S")
    for row, admissible in zip(rows, (["x", "y"], ["y", "x", "x"], ["x"], None, ["x"]), strict=True):
        row["admissible"] = admissible
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    batch = gc.load(tmp_path / "a.jsonl")
    step, final = state_keys(batch, ["action_set"])
    assert same_partition([*step.tolist(), *final.tolist()], ["xy", "xy", "x", "?", "T", "?"])
    with pytest.raises(UsageError, match="no step of these rollouts lists its admissible actions"):
        state_keys(batch_of(random_rows(1)), ["action_set"])


def shell(rollout: str, *turns: tuple[str, str]) -> list[Row]:
    """A rollout at a shell: (output seen, command)."""
    rows = walk(rollout, " ".join("x:y" for _ in turns), 1.0, "done")
    for row, (output, command) in zip(rows, turns, strict=True):
        row["observation"], row["action"] = output, command
    return rows


def test_guard_keeps_empty_outputs_apart() -> None:
    """An invented shell task: `cd` and `rm` both print nothing, and an exit status in tags is nothing too."""
    quiet = "<returncode>0</returncode><output></output>"
    rows = shell("a", ("prompt", "cd src"), ("", "ls"), ("a.py", "rm a.py"), ("", "ls"), (quiet, "x"))
    rows += shell("b", ("prompt", "cd src"), ("", "ls"), ("a.py", "mv a.py"), ("", "cat"), (quiet, "x"))
    step, _ = state_keys(batch_of(rows), ["guard"])
    exact, _ = state_keys(batch_of(rows))
    assert len(set(exact.tolist())) == 4
    a, b = step[:5].tolist(), step[5:].tolist()
    assert a[:3] == b[:3]  # after `cd src` from the prompt: the same empty output
    assert len({a[1], a[3], b[3]}) == 3  # after `rm` and after `mv`: others
    assert a[4] != b[4]


def test_guard_tells_several_in_a_row_apart_by_the_whole_row() -> None:
    rows = shell("a", ("p", "1"), ("", "2"), ("", "3")) + shell("b", ("p", "0"), ("", "2"), ("", "3"))
    step, _ = state_keys(batch_of(rows), ["guard"])
    assert len(set(step.tolist())) == 5
    rows = shell("a", ("", "1"), ("", "2")) + shell("b", ("", "1"), ("", "2"))
    step, _ = state_keys(batch_of(rows), ["guard"])
    assert step[:2].tolist() == step[2:].tolist()  # a first observation stays as it is


@pytest.mark.parametrize(
    ("text", "low"),
    [
        ("", True), (" \n", True), ("[]", True), ("None", True), ("(no output)", True), ("Nothing happens.", True),
        ("Error: user not found", True), ("bash: foo: command not found", True), ("Traceback (most recent call last):\n", True),
        ("I only understood you as far as wanting to go.", True), ("Invalid action", True),
        ("42", False), ("ok", False), ("#@. \n###", False), ("日本", False), ("You are in a room.", False),
        ("The error was mine", False), ("<html><b>3 results</b></html>", False),
    ],
)  # fmt: skip
def test_what_counts_as_low_information(text: str, low: bool) -> None:
    rows = shell("a", ("p", "1"), (text, "3")) + shell("b", ("p", "2"), (text, "3"))
    step, _ = state_keys(batch_of(rows), ["guard"])
    assert (step[1] != step[3]) == low


def test_guard_finds_what_many_unrelated_actions_lead_to() -> None:
    rows = [row for i in range(8) for row in walk(f"r{i}", f"room{i}:push{i} dark:wait", 1.0, "E")]
    assert len(set(state_keys(batch_of(rows), ["guard"])[0].tolist())) == 16
    assert len(set(state_keys(batch_of(rows[:14]), ["guard"])[0].tolist())) == 8  # seven: not many
    assert len(set(state_keys(batch_of(rows[:14]), ["guard:7"])[0].tolist())) == 14
    back = [row for i in range(8) for row in walk(f"r{i}", f"room{i}:back hall:wait", 1.0, "E")]
    assert len(set(state_keys(batch_of(back), ["guard"])[0].tolist())) == 9  # one action: a hub


def test_guard_after_carry_noop_has_nothing_left_to_part() -> None:
    rows = shell("a", ("A", "1"), ("Nothing happens.", "2"), ("B", "3"))
    assert same_partition(found(batch_of(rows), "carry_noop", "guard"), found(batch_of(rows), "carry_noop"))


def test_wrong_key_parameters() -> None:
    for spec, sentence in {
        "actions:x": "rule actions:x: expected a whole number of at least 0",
        "visited": "rule visited: expected a node behind the colon",
        "visited:#12": "'#12' is no node hash, expected # and 16 hexadecimal digits",
        "guard:1": "rule guard:1: expected a whole number of at least 2",
        "prefix:1": "prefix takes nothing behind the colon",
    }.items():
        with pytest.raises(UsageError, match=sentence):
            gc.Settings(rules=(spec,))
    with pytest.raises(UsageError, match="visited:nowhere: no observation of these rollouts is that text"):
        state_keys(batch_of(random_rows(1)), ["visited:nowhere"])
    with pytest.raises(UsageError, match="'similarity' works on texts and has to stand before 'actions'"):
        gc.Settings(rules=("actions:1", "similarity:0.9"))


def test_tau_bench_sharing(test_data: Path) -> None:
    batch = gc.load(test_data / "tau_bench")
    shared = {
        spec: 100 * gc.describe(batch, [spec])["graph"]["shared"] for spec in ("exact", "actions:1", "actions:2", "prefix")
    }
    assert shared["exact"] == pytest.approx(37.1, abs=0.1)
    assert shared["actions:1"] == pytest.approx(31.6, abs=0.5)
    assert shared["actions:2"] == pytest.approx(15.0, abs=0.5)
    assert shared["prefix"] == pytest.approx(0.5, abs=0.5)

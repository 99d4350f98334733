"""The columnar assembly against a plain dictionary program that follows the words of the design, on random files."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from step_rows import Row, row

from graft_core.rollouts import LoadReport, RolloutBatch, batch_rows

Loader = Callable[..., tuple[RolloutBatch, LoadReport]]


def random_rows(chance: random.Random) -> list[Row]:
    """Interleaved rows of a few rollouts, with all the ways to say an outcome or a flag, right and wrong."""
    rows: list[Row] = []
    for name in range(chance.randrange(1, 7)):
        group = chance.choice("gh")
        outcomes = chance.choice([[1.0], [0.0], [None], ["absent"], ["absent", 1.0], [None, 0.5], [0.0, 1.0]])
        length = chance.randrange(5)
        steps: list[int | None] = list(range(length)) or [None]
        if length and chance.random() < 0.3:
            steps.append(None)
        for step in steps:
            made = row(step, group, f"r{name}")
            outcome = chance.choice(outcomes)
            if outcome != "absent":
                made["outcome"] = outcome
            if step is not None:
                if chance.random() < 0.7:
                    made["reward"] = chance.choice([None, 0, 1, -0.5])
                if chance.random() < 0.2:
                    made["terminated"] = chance.choice([True, False])
                made["next_observation"] = chance.choice(["x", "y", None])
            if chance.random() < 0.1:
                made["success"] = chance.choice([True, False])
            rows.append(made)
    chance.shuffle(rows)
    return rows


def meaning(rows: list[Row]) -> dict[tuple[str, str], dict[str, Any] | None]:
    """Per rollout what the design says it is, None for a rollout that must be rejected."""
    found: dict[tuple[str, str], dict[str, Any] | None] = {}
    for key in dict.fromkeys((r["group_id"], r["rollout_id"]) for r in rows):
        mine = [r for r in rows if (r["group_id"], r["rollout_id"]) == key]
        steps = sorted((r for r in mine if r["step"] is not None), key=lambda r: r["step"])
        outcomes = {r["outcome"] for r in mine if r.get("outcome") is not None}
        success = {r["success"] for r in mine if r.get("success") is not None}
        ends = [r.get("terminated") for r in steps]
        early = any(ends[:-1]) and ends[-1] is False
        if len(outcomes) > 1 or len(success) > 1 or early:
            found[key] = None
            continue
        rewards = [r["reward"] for r in steps if r.get("reward") is not None]
        said_unknown = any("outcome" in r for r in mine)
        ended = ends[-1] if ends and ends[-1] is not None else (True in ends or None if None in ends or not ends else False)
        if ended is None and False in ends:
            ended = False
        found[key] = {
            "outcome": outcomes.pop() if outcomes else None if said_unknown or not rewards else float(sum(rewards)),
            "success": success.pop() if success else None,
            "terminated": ended,
            "n_steps": len(steps),
            "final_observation": steps[-1].get("next_observation") if steps else None,
            "observations": [r["observation"] for r in steps],
        }
    return found


def test_random_files_mean_what_a_plain_program_says(loaded: Loader) -> None:
    chance, rejected, accepted = random.Random(7), 0, 0
    for _ in range(250):
        rows = [row(0, "keep", "keep", outcome=1), *random_rows(chance)]
        expected = meaning(rows)
        batch, report = loaded([json.dumps(r) for r in rows])
        rollouts = {(r["group_id"], r["rollout_id"]): r for r in batch_rows(batch)[0]}
        good = {key: value for key, value in expected.items() if value is not None}
        assert list(rollouts) == list(good)
        for index, (key, value) in enumerate(good.items()):
            steps = batch.observation[batch.offsets[index] : batch.offsets[index + 1]]
            assert [batch.text(i) for i in steps] == value.pop("observations")
            assert {name: rollouts[key][name] for name in value} == value, rows
        bad = [key for key in expected if expected[key] is None]
        assert report.rejected == sum((r["group_id"], r["rollout_id"]) in bad for r in rows)
        rejected, accepted = rejected + len(bad), accepted + len(good)
    assert rejected > 50 and accepted > 300

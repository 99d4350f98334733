"""Candidates for a missing group id, and groups inferred from ids shared in actions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from step_rows import row

from graft_core.formats import load
from graft_core.formats.candidates import Candidate, candidates
from graft_core.rollouts import LoadReport, RolloutBatch

Loader = Callable[..., tuple[RolloutBatch, LoadReport]]


def shopping(rollout: str, *products: str, outcome: float = 0.0, **more: object) -> list[dict[str, object]]:
    actions = ["search[shoes]", *(f"click[{p}]" for p in products)]
    return [row(i, None, rollout, observation="'Search'" if i == 0 else f"page {a}", action=a, outcome=outcome, **more)
            for i, a in enumerate(actions)]  # fmt: skip


ROWS = [
    *shopping("r1", "b0aa11", outcome=1.0, instruction="red shoes", seed=1),
    *shopping("r2", "b0aa11", "B0BB22", instruction="red shoes", seed=1),
    *shopping("r3", "b0bb22", instruction="red shoes", seed=2),
    *shopping("r4", "b0cc33", instruction="blue shoes", seed=2),
    *shopping("r5", "b0cc33", outcome=1.0, instruction="blue shoes", seed=3),
]


def offered(batch: RolloutBatch) -> dict[str, Candidate]:
    return {c.group_by: c for c in candidates(batch)}


def test_candidates_with_their_sizes(loaded: Loader) -> None:
    batch, _ = loaded(ROWS)
    found = offered(batch)
    assert list(found) == ["column:instruction", "column:observation", "actions", "file", "column:seed"]
    assert (found["actions"].groups, found["actions"].sizes, found["actions"].mixed) == (2, {3: 1, 2: 1}, 2)
    assert (found["column:observation"].sizes, found["file"].sizes) == ({5: 1}, {5: 1})
    assert found["column:instruction"].sizes == {3: 1, 2: 1} and found["column:instruction"].example == "red shoes"
    assert found["column:seed"].sizes == {2: 2, 1: 1}
    assert all(c.usable and json.dumps(c.as_dict()) for c in found.values())


@pytest.mark.parametrize("group_by", ["column:instruction", "column:observation", "actions", "file", "column:seed"])
def test_what_a_candidate_promises_is_what_loading_gives(loaded: Loader, group_by: str) -> None:
    promised = offered(loaded(ROWS)[0])[group_by]
    batch, _ = loaded(ROWS, group_by=group_by)
    sizes = sorted((batch.group == g).sum() for g in range(batch.n_groups))
    assert sizes == sorted(size for size, n in promised.sizes.items() for _ in range(n)) and not batch.groups_assumed


def test_ids_link_rollouts_also_through_others_but_not_across_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in ROWS))
    batch = load(tmp_path, group_by="actions")
    assert batch.n_groups == 4 and sorted(batch.group_ids)[0].startswith("a/b0")


def test_rollouts_without_an_id_get_no_group_and_the_candidate_says_so(loaded: Loader) -> None:
    batch, _ = loaded([*ROWS, *shopping("r6"), *shopping("r7", "24-hour", "size-12")])
    found = offered(batch)["actions"]
    assert (found.without, found.usable) == (1, False) and found.sizes == {3: 1, 2: 1, 1: 1}
    assert candidates(batch)[-1].usable is False, "those that cannot be used stand last"


def test_an_empty_batch_offers_nothing(loaded: Loader) -> None:
    batch, _ = loaded(ROWS)
    empty = RolloutBatch(batch.rollouts.slice(0, 0), batch.steps.slice(0, 0), batch.texts)
    assert candidates(empty) == []


def test_the_shop_dump_offers_groups_of_eight(test_data: Path) -> None:
    batch = load(test_data / "verl_agent_webshop")
    found = offered(batch)["actions"]
    assert found.sizes.get(8, 0) >= 6 and max(found.sizes) < 32
    assert offered(batch)["column:observation"].groups == len(
        {batch.text(int(o)) for o in batch.observation[batch.offsets[:-1]]}
    )


def test_sizes_and_training_steps_are_no_tasks(loaded: Loader) -> None:
    rows = [{**r, "obs_n_tokens": 200 + n % 2, "train_step": n % 2} for n, r in enumerate(ROWS)]
    assert set(offered(loaded(rows)[0])) == set(offered(loaded(ROWS)[0]))

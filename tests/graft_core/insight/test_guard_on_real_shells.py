"""`guard` on real shell output: empty outputs no longer merge moments that different commands led to."""

from __future__ import annotations

from pathlib import Path

import graft_core as gc
from graft_core.insight import low_information_merges


def test_guard_catches_the_empty_outputs_of_intercode(test_data: Path) -> None:
    batch = gc.load(test_data / "intercode")
    plain = low_information_merges(gc.build_graph(batch), limit=10_000)
    empty = [merge for merge in plain if not merge["text"].strip()]
    assert len(empty) > 10
    assert sum(merge["steps"] for merge in empty) > 50
    guarded = low_information_merges(gc.build_graph(batch, rules=["guard"]), limit=10_000)
    assert not [merge for merge in guarded if not merge["text"].strip()]

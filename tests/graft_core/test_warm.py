"""The warm-up batch is a real one: it touches loops, both outcomes, and every estimator that its columns allow."""

from __future__ import annotations

from graft_core.insight import findings
from graft_core.warm import tiny_batch, warm


def test_the_warm_up_runs_on_a_batch_with_both_outcomes_and_a_loop() -> None:
    batch = tiny_batch()
    assert sorted(batch.outcome.tolist()) == [0.0, 0.0, 1.0, 1.0]
    found = findings(batch)
    assert found.graph.n_ordinary == 3
    assert int(found.graph.visits[0]) == 5
    assert warm() > 0

"""What stands beside the graph: the chosen moment or step in words and small tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from graft_app.views import why
from graft_app.views.text import block, count, number, one_line
from graft_core.credit import estimators
from graft_core.insight import Findings
from graft_core.insight.moment import edge_facts, node_facts
from graft_core.insight.why import position_of_row


def _end_sign(success: float) -> str:
    return "?" if success != success else ("succeeded" if success == 1 else "failed")


def _titles(found: Findings) -> tuple[str, str]:
    known = estimators()
    a, b = known[found.settings.estimator].title, known[found.settings.baseline].title
    return (a, b) if a != b else (f"A: {a}", f"B: {b}")


def both(found: Findings) -> dict[str, Any]:
    """Credit A (not normalised) and B per step, by the name of their column."""
    a, b = _titles(found)
    return {a: found.credit, b: found.baseline}


def _credit_columns(found: Findings) -> dict[str, Any]:
    return {name: st.column_config.NumberColumn(format="%+.2f", width=60) for name in both(found)}


def moment(found: Findings, node: int, value_word: str) -> None:
    """The panel of a chosen node."""
    facts = node_facts(found.graph, found.values.v, node, **both(found))
    st.markdown(f"**{'How rollouts end here' if facts['sink'] else 'Moment'}** · node {node}")
    block(facts["text"], 1200)
    left, middle, right = st.columns(3)
    left.metric(value_word.split()[0], number(facts["value"]), help=f"{value_word} from here (V: value of this node)")
    middle.metric("visits", f"{facts['visits']:,}", help="steps that leave this moment; for an end the rollouts that end there")
    right.metric(
        "rollouts",
        f"{len(facts['rollouts'])}",
        help=f"{facts['succeeded']} succeeded, {facts['failed']} failed, {facts['unknown']} unknown",
    )
    if facts["actions"]:
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        "action": one_line(row["action"]),
                        "then": row["value_after"],
                        **{name: row[name] for name in both(found)},
                        "won": f"{row['succeeded']} of {row['succeeded'] + row['failed'] + row['unknown']}",
                    }
                    for row in facts["actions"]
                ]
            ),
            hide_index=True,
            alt="actions taken from this moment",
            column_config={
                "action": st.column_config.TextColumn(width=104),
                "then": st.column_config.NumberColumn(format="%.2f", width=48, help=f"mean {value_word} after it"),
                **_credit_columns(found),
                "won": st.column_config.TextColumn(width=56, help="how many of the rollouts that did it here succeeded"),
            },
        )
    names = ", ".join(f"{one_line(r['rollout_id'], 24)} {_end_sign(r['success'])}" for r in facts["rollouts"][:40])
    st.text(f"Rollouts through it: {names}" + (" …" if len(facts["rollouts"]) > 40 else ""))


def step(
    found: Findings, edge: int, value_word: str, at: int | None, choose: Callable[[int], None],
    explained: Callable[[], Findings] | None = None,
) -> int:
    """The panel of a chosen edge; returns the path position of the step it explains.

    at: batch row of the instance to explain; choosing another highlights its rollout. explained: makes the findings with
    what takes longer (intervals); asked only once the facts are on screen.
    """
    facts = edge_facts(found.graph, found.values.v, edge, **both(found))
    st.markdown(f"**Step** · {count(facts['count'], 'time')} · edge {edge}")
    block(facts["action"], 600)
    left, right = st.columns(2)
    left.metric("before", number(facts["value_before"]), help=f"{value_word} from the moment before the step")
    right.metric(
        "after",
        number(facts["value_after"]),
        number(facts["value_after"] - facts["value_before"], sign=True),
        help=f"{value_word} from the moment this step led to",
    )
    table = pd.DataFrame(
        [
            {
                "step": f"{one_line(row['rollout_id'], 24)}/{row['step']}",
                "ended": _end_sign(row["success"]),
                **{name: row[name] for name in both(found)},
            }
            for row in facts["instances"]
        ]
    )
    picked = st.dataframe(
        table,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key=f"instances_{edge}",
        column_config={"step": st.column_config.TextColumn(width=58), "ended": st.column_config.TextColumn(width=74)}
        | _credit_columns(found),
        alt="instances of this step",
    )
    instances = [row["row"] for row in facts["instances"]]
    position = position_of_row(found.batch, at if at is not None and at in instances else instances[0])
    why.show(explained() if explained else found, position)
    rows = picked["selection"]["rows"]
    if rows and rows[0] < len(facts["instances"]):
        chosen = facts["instances"][rows[0]]["row"]
        if chosen != at:
            choose(chosen)
            st.rerun()
    if facts["said"] != facts["action"]:
        with st.expander("What the model said (first instance)"):
            block(facts["said"])
    with st.expander("The moment before"):
        block(facts["text_before"], 1500)
    with st.expander("The moment after"):
        block(facts["text_after"], 1500)
    return position


def nothing(found: Findings, group: int) -> None:
    """The panel when nothing is chosen."""
    batch = found.batch
    here = batch.group == group
    st.markdown("**Choose a moment or a step in the picture.**")
    st.caption("Arrow keys walk along steps once the picture has the focus; x flips A and B; ? lists all keys.")
    won, lost = (int((batch.success[here] == value).sum()) for value in (1, 0))
    unknown = int(here.sum()) - won - lost
    more = f", {unknown} unknown" if unknown else ""
    st.markdown(f"{count(int(here.sum()), 'rollout')}: {won} succeeded, {lost} failed{more}")
    good = found.good[batch.group[batch.step_rollout[found.good]] == group]
    if good.size:
        st.caption(
            f"{count(int(good.size), 'good step')} in this task's failed rollouts; blue edges of failed paths show them."
        )

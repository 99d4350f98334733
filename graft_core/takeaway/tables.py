"""Moments and steps as tables to take away: CSV for a spreadsheet, JSONL and Parquet without loss."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from graft_core.insight.findings import Findings
from graft_core.insight.structure import mean_per_edge
from graft_core.rollouts import IntArray
from graft_core.takeaway.drawn import group_code
from graft_core.takeaway.guard import guard

Format = Literal["csv", "jsonl", "parquet"]
FORMATS: Final[tuple[Format, ...]] = ("csv", "jsonl", "parquet")
CHUNK: Final = 65536
TEXTS: Final = ("observation", "action", "said", "text")
"""Columns that hold what rollouts saw, did or said."""


def step_rows(found: Findings, group: int | str | None = None, *, texts: bool = True) -> pa.Table:
    """One row per step, of one task or of all, in path order.

    group_id, rollout_id, step, outcome, success; node and edge in the graph; value_before and value_after; credit (A,
    not normalised: what decides a sign), credit_shown (A as set) and baseline (B); seen_by (rollouts of known outcome
    that left this moment); good (in a failed rollout with positive credit); chance and certainty where `found` has
    them; and, with `texts`, observation, action and said. Undefined is null. Raises `UsageError` for a task that is
    not in the batch.
    """
    batch, graph = found.batch, found.graph
    at = np.arange(batch.n_steps)
    if group is not None:
        at = np.flatnonzero(batch.group[batch.step_rollout] == group_code(batch, group))
    rollout, v = batch.step_rollout[at], found.values.v
    good = np.zeros(batch.n_steps, dtype=bool)
    good[found.good] = True
    success = batch.success[rollout]
    columns: dict[str, Any] = {
        "group_id": batch.rollouts.column("group_id").take(pa.array(rollout)),
        "rollout_id": batch.rollouts.column("rollout_id").take(pa.array(rollout)),
        "step": batch.step_index[at],
        "outcome": _numbers(batch.outcome[rollout]),
        "success": pa.array(success == 1, mask=np.isnan(success)),
        "node": graph.src[at],
        "edge": graph.edge[at],
        "value_before": _numbers(v[graph.src[at]]),
        "value_after": _numbers(v[graph.dst[at]]),
        "credit": _numbers(found.credit[at]),
        "credit_shown": _numbers(found.shown[at]),
        "baseline": _numbers(found.baseline[at]),
        "seen_by": graph.node_rollouts_known[graph.src[at]],
        "good": good[at],
    }
    if found.chance is not None:
        beyond = np.asarray(found.chance.beyond, dtype=bool)[at]
        columns |= {"p": _numbers(found.chance.p[at]), "q": _numbers(found.chance.q[at]), "beyond_luck": beyond}
    if found.certainty is not None:
        edge = graph.edge[at]
        columns |= {"low": _numbers(found.certainty.low[edge]), "high": _numbers(found.certainty.high[edge])}
    if texts:
        named = {"observation": batch.observation, "action": batch.action, "said": batch.action_text}
        columns |= {name: _texts(found, ids[at]) for name, ids in named.items()}
    return pa.table(columns)


def node_rows(found: Findings, group: int | str | None = None, *, texts: bool = True) -> pa.Table:
    """One row per moment, of one task or of all: group_id, node, kind (moment or end), value, visits, rollouts, text."""
    batch, graph = found.batch, found.graph
    at = np.arange(graph.n_nodes)
    if group is not None:
        at = np.flatnonzero(graph.node_group == group_code(batch, group))
    columns: dict[str, Any] = {
        "group_id": pa.array(batch.group_ids, pa.string()).take(pa.array(graph.node_group[at])),
        "node": at,
        "kind": np.where(graph.node_is_sink[at], "end", "moment").astype(object),
        "value": _numbers(found.values.v[at]),
        "visits": np.asarray(graph.visits)[at],
        "rollouts": np.asarray(graph.node_rollouts)[at],
    }
    return pa.table(columns | ({"text": _texts(found, graph.node_text[at])} if texts else {}))


def edge_rows(found: Findings, group: int | str | None = None, *, texts: bool = True) -> pa.Table:
    """One row per edge of the graph: group_id, edge, from, to, count, the mean of credit A and B, action."""
    batch, graph = found.batch, found.graph
    owner = graph.node_group[graph.edge_src]
    at = np.arange(graph.n_edges)
    if group is not None:
        at = np.flatnonzero(owner == group_code(batch, group))
    credit, baseline = (mean_per_edge(graph, batch.to_rows(a))[at] for a in (found.credit, found.baseline))
    columns: dict[str, Any] = {
        "group_id": pa.array(batch.group_ids, pa.string()).take(pa.array(owner[at])),
        "edge": at,
        "from": graph.edge_src[at],
        "to": graph.edge_dst[at],
        "count": graph.count[at],
        "credit": _numbers(credit),
        "baseline": _numbers(baseline),
    }
    return pa.table(columns | ({"action": _texts(found, graph.edge_text[at])} if texts else {}))


def listed_rows(rows: Sequence[Mapping[str, Any]], *, texts: bool = True) -> pa.Table:
    """Rows of a list on screen (`Findings.merged_rows` and the like) as a table; NaN is null.

    `steps`, the steps a row stands for, is a list of {rollout_id, step}. Without `texts` nothing that a rollout saw, did
    or said is among the columns.
    """

    def cell(value: Any) -> Any:
        return None if isinstance(value, float) and value != value else value

    def steps(value: Any) -> Any:
        return [{"rollout_id": rollout, "step": step} for rollout, step in value]

    def kept(row: Mapping[str, Any]) -> dict[str, Any]:
        named = {name: value for name, value in row.items() if texts or name not in TEXTS}
        return {name: steps(value) if name == "steps" else cell(value) for name, value in named.items()}

    return pa.Table.from_pylist([kept(row) for row in rows])


def as_bytes(table: pa.Table, form: Format, travels: Mapping[str, Any] | None = None) -> bytes:
    """A table as a file's content.

    csv: for a spreadsheet, so texts that it would take for a formula begin with an apostrophe and hidden marks are
    replaced; jsonl and parquet: without loss. travels: settings, version and input, kept in a Parquet file's metadata.
    """
    out = io.BytesIO()
    if form == "parquet":
        import pyarrow.parquet as pq

        kept = {"graft": orjson.dumps(dict(travels), option=orjson.OPT_NON_STR_KEYS)} if travels else None
        pq.write_table(table.replace_schema_metadata(kept), out, compression="zstd")
    elif form == "csv":
        import pyarrow.csv as csv

        csv.write_csv(_guarded(table), out, csv.WriteOptions(quoting_style="needed"))
    else:
        for chunk in table.to_batches(max_chunksize=CHUNK):
            out.write(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in chunk.to_pylist()))
    return out.getvalue()


def _guarded(table: pa.Table) -> pa.Table:
    """The table with every text made harmless, each distinct text once; a list becomes JSON in a cell."""
    for at, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            cells = [orjson.dumps(value).decode() for value in table.column(at).to_pylist()]
            table = table.set_column(at, field.name, pa.array(cells, pa.string()))
        if pa.types.is_nested(field.type) or pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            coded = table.column(at).combine_chunks().dictionary_encode()
            safe = pa.array([guard(text) for text in coded.dictionary.to_pylist()], pa.large_string())
            table = table.set_column(at, field.name, safe.take(coded.indices))
    return table


def _texts(found: Findings, ids: IntArray) -> pa.Array:
    """Texts by id; null where there is none."""
    wanted = pa.array(np.maximum(ids, 0), mask=np.asarray(ids) < 0)
    return pc.take(found.batch.text_array, wanted)


def _numbers(values: Any) -> pa.Array:
    return pa.array(np.asarray(values, dtype=np.float64), from_pandas=True)

"""Tables, GraphML and weights: loss-free where promised, guarded where a spreadsheet reads, numbers as computed."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from typing import Any

import hostile
import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graft_core as gc
from graft_core.insight import Findings
from graft_core.takeaway.graphml import graph_graphml
from graft_core.takeaway.tables import as_bytes, edge_rows, node_rows, step_rows
from graft_core.takeaway.weights import train_settings, training_weights

MAKERS = (step_rows, node_rows, edge_rows)


def jsonl(table: pa.Table) -> list[dict[str, Any]]:
    lines = as_bytes(table, "jsonl").decode().split("\n")  # other line ends are part of the texts
    return [json.loads(line) for line in lines[:-1]]


def parquet(table: pa.Table) -> pa.Table:
    return pq.read_table(io.BytesIO(as_bytes(table, "parquet", {"version": "1", "settings": {}})))


def test_jsonl_and_parquet_give_back_every_hostile_text(evil: Findings) -> None:
    wanted = [(row["group_id"], row["rollout_id"], row["step"], row["observation"], row["action"], row["action_text"])
              for row in hostile.rows()]  # fmt: skip
    names = ("group_id", "rollout_id", "step", "observation", "action", "said")
    for rows in (jsonl(step_rows(evil)), parquet(step_rows(evil)).to_pylist()):
        assert sorted(tuple(row[n] for n in names) for row in rows) == sorted(wanted)
    assert {row["text"] for row in jsonl(node_rows(evil))} >= set(hostile.TEXTS)
    assert {row["action"] for row in jsonl(edge_rows(evil))} == {row["action"] for row in hostile.rows()}


@pytest.mark.parametrize("make", MAKERS)
def test_csv_holds_no_formula_and_all_rows(evil: Findings, make: Any) -> None:
    table = make(evil)
    rows = list(csv.reader(io.StringIO(as_bytes(table, "csv").decode(), newline="")))
    assert rows[0] == table.schema.names and len(rows) == table.num_rows + 1
    kinds = [pa.types.is_string(f.type) or pa.types.is_large_string(f.type) for f in table.schema]
    cells = [cell for row in rows[1:] for cell, text in zip(row, kinds, strict=True) if text]
    assert not [c for c in cells if c.lstrip()[:1] in tuple("=+-@\t") and c]
    assert any(c.startswith("'=") for c in cells) or (make is node_rows and any(c.startswith("'") for c in cells))
    assert max(map(len, cells)) > 100_000 or make is edge_rows  # nothing is cut


def test_credit_for_a_trainer_stays_free_of_guards(evil: Findings) -> None:
    """What the command line writes is for programs: no apostrophe is put before an id."""
    from graft_core.exports import step_table

    made = step_table(evil.batch, {"grpo": evil.batch.to_rows(evil.baseline)})
    assert f"=bad {hostile.TEXTS[10]}" in made.column("rollout_id").to_pylist()


@pytest.mark.parametrize("make", MAKERS)
def test_without_texts_ids_and_numbers_stay(sample: Findings, make: Any) -> None:
    full, bare = make(sample), make(sample, texts=False)
    dropped = set(full.schema.names) - set(bare.schema.names)
    assert dropped in ({"observation", "action", "said"}, {"text"}, {"action"})
    assert bare.equals(full.select(bare.schema.names))


def test_steps_hold_the_numbers_of_the_findings(sample: Findings) -> None:
    rows = jsonl(step_rows(sample))
    key = ("group_id", "rollout_id", "step")
    by_key = {tuple(row[k] for k in key): row for row in rows}
    assert len(by_key) == sample.batch.n_steps
    assert sum(row["good"] for row in rows) == sample.good.size == 142
    for said in sample.rows(sample.good):
        row = by_key[tuple(said[k] for k in key)]
        assert row["good"] and row["action"] == said["action"] and row["success"] is False
        for name in ("credit", "baseline", "value_before", "value_after", "seen_by", "p", "low"):
            assert row[name] == pytest.approx(said[name])


def test_one_task_alone(sample: Findings) -> None:
    whole = step_rows(sample)
    parts = [step_rows(sample, g) for g in range(sample.batch.n_groups)]
    assert pa.concat_tables(parts).num_rows == whole.num_rows
    assert step_rows(sample, "cool apple").equals(parts[0])
    with pytest.raises(gc.UsageError, match="no task 'x'"):
        node_rows(sample, "x")


def test_undefined_is_null_never_zero(vectors: Any) -> None:
    found = gc.findings(gc.load(str(vectors / "mixed.jsonl")), shuffles=0)
    rows = jsonl(step_rows(found))
    assert np.isnan(found.credit).any()
    assert [row["credit"] is None for row in rows] == np.isnan(found.credit).tolist()
    unknown = [row for row in rows if row["outcome"] is None]
    assert unknown and all(row["success"] is None for row in unknown)


def test_parquet_carries_its_origin(sample: Findings) -> None:
    kept = json.loads(parquet(step_rows(sample)).schema.metadata[b"graft"])
    assert kept == {"version": "1", "settings": {}}


def test_graphml_reads_back_as_the_graph(sample: Findings) -> None:
    made = nx.read_graphml(io.BytesIO(graph_graphml(sample, "cool apple")), node_type=int)
    graph, nodes = sample.graph, np.flatnonzero(sample.graph.node_group == 0)
    assert sorted(made) == nodes.tolist()
    for node, data in made.nodes(data=True):
        assert data["text"] == sample.batch.text(int(graph.node_text[node]))
        assert data["value"] == pytest.approx(sample.values.v[node]) and data["visits"] == graph.visits[node]
    edges = list(made.edges(data=True))
    assert len(edges) == int((graph.node_group[graph.edge_src] == 0).sum())
    assert sum(data["count"] for *_, data in edges) == int((sample.batch.group[sample.batch.step_rollout] == 0).sum())
    assert all("credit" in data for *_, data in edges)


def test_graphml_replaces_what_xml_forbids_and_nothing_else(evil: Findings) -> None:
    written = graph_graphml(evil, 0)
    ET.fromstring(written)
    texts = {data["text"] for _, data in nx.read_graphml(io.BytesIO(written)).nodes(data=True)}
    allowed = [t for t in hostile.TEXTS if not set("\r\u0000") & set(t)]
    assert len(allowed) == 48 and set(allowed) <= texts
    assert any("\ufffd\ufffd" in text for text in texts)
    bare = graph_graphml(evil, 0, texts=False)
    assert b"calc" not in bare and b"credit" in bare


def test_ids_of_elements_in_graphml_are_not_given_twice(sample: Findings) -> None:
    root = ET.fromstring(graph_graphml(sample, 0))
    keys = [element.get("id") for element in root.iter() if element.tag.endswith("}key")]
    assert len(keys) == len(set(keys)) >= 8


def test_weights_are_the_credit_a_trainer_would_use(sample: Findings) -> None:
    batch = sample.batch
    rows = jsonl(training_weights(sample, np.arange(batch.n_steps), train_settings(sample)))
    assert [list(row) for row in rows[:1]] == [["group_id", "rollout_id", "step", "weight"]]
    wanted = gc.estimate(batch, "graft")[batch.order]
    assert [row["weight"] for row in rows] == pytest.approx(wanted.tolist())
    own = training_weights(sample)
    assert own.column("weight").to_pylist() == pytest.approx(sample.credit[sample.good].tolist())
    assert own.num_rows == 142 and min(own.column("weight").to_pylist()) > 0


def test_weights_keep_the_graph_that_is_on_screen() -> None:
    import graft_sample_data

    batch = gc.load(graft_sample_data.paths()[0])
    found = gc.findings(batch, rules=("history:1",), gamma=0.9, shuffles=0)
    weights = training_weights(found, np.arange(batch.n_steps), train_settings(found)).column("weight").to_numpy()
    wanted = gc.estimate(batch, "graft", rules=("history:1",), gamma=0.9)[batch.order]
    np.testing.assert_allclose(weights, wanted)
    assert not np.allclose(wanted, gc.estimate(batch, "graft")[batch.order])

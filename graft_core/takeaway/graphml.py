"""One task's graph as GraphML, for Gephi, yEd, igraph and networkx."""

from __future__ import annotations

import io
import math
from typing import Any

import networkx as nx
import numpy as np

from graft_core.insight.findings import Findings
from graft_core.insight.structure import mean_per_edge
from graft_core.takeaway.drawn import group_code
from graft_core.takeaway.guard import xml_text


def graph_graphml(found: Findings, group: int | str, *, texts: bool = True) -> bytes:
    """The task's multigraph with texts, counts, value (nodes) and the mean of credit A and B (edges).

    What is undefined is left out, as GraphML has no word for it; characters that XML forbids become the replacement
    sign. texts: False leaves out what rollouts said. Raises `UsageError` for a task that is not in the batch.
    """
    code = group_code(found.batch, group)
    made = found.graph.to_networkx(code)
    made.graph["group"] = xml_text(str(made.graph["group"]))
    made.graph |= {"estimator": found.settings.estimator, "baseline": found.settings.baseline}
    credit, baseline = (mean_per_edge(found.graph, found.batch.to_rows(a)) for a in (found.credit, found.baseline))
    for node, data in made.nodes(data=True):
        data["kind"] = "end" if data.pop("sink") else "moment"  # networkx writes booleans with a capital letter
        _fill(data, {"value": float(found.values.v[node])}, ("text",), texts)
    for _, _, edge, data in made.edges(keys=True, data=True):
        _fill(data, {"credit": float(credit[edge]), "baseline": float(baseline[edge])}, ("action",), texts)
    written = io.BytesIO()
    nx.write_graphml_xml(made, written)
    return written.getvalue()


def _fill(data: dict[str, Any], numbers: dict[str, float], words: tuple[str, ...], texts: bool) -> None:
    """Add numbers to a node's or edge's attributes; take undefined ones and unwanted texts away, clean the rest."""
    data |= numbers
    for name in list(data):
        value = data[name]
        if (isinstance(value, float) and not math.isfinite(value)) or (name in words and not texts):
            del data[name]
        elif name in words:
            data[name] = xml_text(value)
        elif isinstance(value, np.generic):
            data[name] = value.item()

"""`similarity:TAU`: two moments are the same when their texts are similar: cosine of at least TAU with a leading text.

Distinct texts are sorted by how often they occur (most first), then by content hash; each joins the most similar leader so far
if their cosine is at least TAU (of equal ones the first), else it leads. `similarity:TAU` compares character n-grams
(TF-IDF, `graft_core.states._tfidf`), `similarity:TAU@MODEL` sentence embeddings of a model on disk or on the hub
(`graft_core.states._embeddings`; needs torch and transformers). The inverse document frequencies are those of the batch, so a
merge by n-grams can depend on what else was loaded.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from graft_core.errors import UsageError
from graft_core.rollouts import IntArray, RolloutBatch
from graft_core.states._text import used_codes
from graft_core.states.base import Keys, StateRule, text_hashes

DEFAULT = "0.9"  # the GRAFT paper's setting


def read(parameter: str) -> tuple[float, str]:
    """(tau, model) of '0.9' or '0.9@MODEL'; model "" means n-grams."""
    word, at, model = parameter.partition("@")
    try:
        tau = float(word)
    except ValueError:
        tau = float("nan")
    if not 0.0 < tau <= 1.0 or (at and not model):
        raise UsageError(
            f"rule similarity:{parameter}: expected a number above 0 and up to 1, or one with a model behind it such as "
            f"{DEFAULT}@FOLDER or {DEFAULT}@owner/name"
        )
    return tau, model


def leading_order(keys: Keys, used: IntArray) -> IntArray:
    """Positions in `used` by how often the text occurs (most first), then by content hash."""
    counts = np.bincount(keys.codes, minlength=int(used.max(initial=0)) + 1)[used]
    return np.lexsort((text_hashes(keys.texts, used), -counts))


def _similar(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    tau, model = read(parameter)
    assert keys.texts is not None
    used = used_codes(keys)
    order = leading_order(keys, used)
    texts = keys.texts.take(pa.array(used[order]))
    if model:
        from graft_core.states._embeddings import leaders
    else:
        from graft_core.states._tfidf import leaders
    leader = leaders(texts, tau, model)  # position in `texts` of each text's leader
    table = np.arange(len(keys.texts) + 1)
    table[used[order]] = used[order][leader]
    return Keys(table[keys.codes], keys.final_missing, keys.texts, None, keys.rules)


RULE = StateRule(
    name="similarity",
    meaning="the texts are similar",
    stage="text",
    apply=_similar,
    parameter="TAU or TAU@MODEL",
    default=DEFAULT,
    rank=13,
    check=read,
)

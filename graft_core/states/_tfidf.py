"""Similar texts by character n-grams: TF-IDF with n = 4, exact cosines, greedy leaders.

Term frequency is the n-gram's count in the text with one space put around it, the inverse document frequency
ln((1 + N) / (1 + df)) + 1 over the N distinct texts; rows are divided by their length. n-grams are hashed to 2^22 numbers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from graft_core.rollouts import IntArray
from graft_core.states import _tfidf_kernels as kernels

N = 4
BITS = 22


def leaders(texts: pa.Array, tau: float, model: str = "") -> IntArray:
    """Position of each text's leader, texts standing in leading order (see `similarity`). int64[len(texts)]."""
    words = [f" {text} " for text in texts.to_pylist()]
    letters = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in words])]).astype(np.int64)
    starts, features, counts = kernels.ngrams(letters, offsets, N, 1 << BITS)
    document = np.bincount(features, minlength=1 << BITS)
    idf = np.log((1 + len(words)) / (1 + document)) + 1
    # rarest first: the beginning of a row then says the most, and few rows share it
    rank = np.empty(1 << BITS, dtype=np.int64)
    by_rarity = np.argsort(document, kind="stable")
    by_rarity = by_rarity[document[by_rarity] > 0]
    rank[by_rarity] = np.arange(by_rarity.size)
    ranks, weights = kernels.rows(starts, rank[features], counts * idf[features])
    found: IntArray = kernels.greedy(starts, ranks, weights, by_rarity.size, tau)
    return found

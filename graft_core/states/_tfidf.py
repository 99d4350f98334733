"""Similar texts by character n-grams: TF-IDF with n = 4, exact cosines, greedy leaders.

Term frequency is the n-gram's count in the text with one space put around it, the inverse document frequency
ln((1 + N) / (1 + df)) + 1 over the N distinct texts; rows are divided by their length. n-grams are hashed to 2^22 numbers.

The nearest leaders come from a compiled join of our own (prefixes of rare n-grams as in Bayardo, Ma and Srikant,
"Scaling up all pairs similarity search", 2007, with the length bounds of Anastasiu and Karypis, "L2AP", 2014), not from a
library: sparse products (scipy, and sparse_dot_topn with its threshold) multiply all pairs that share any n-gram. On 100,000
texts of a 2,000-word vocabulary they need 413 and 212 s of processor time for half of all pairs, the join 12 s
(benchmarks/similarity.py).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from graft_core.rollouts import IntArray
from graft_core.states import _tfidf_kernels as kernels

N = 4
BITS = 22
BLOCK = 2048  # texts compared with all leaders before them at a time, side by side; then among themselves, in turn


def leaders(texts: pa.Array, tau: float, model: str = "", threads: int | None = None) -> IntArray:
    """Position of each text's leader, texts standing in leading order (see `similarity`). int64[len(texts)].

    The leader is the most similar earlier leader with cosine >= tau (of equal ones the first), else the text itself. threads:
    how many at a time (the result does not depend on it).
    """
    n, workers = len(texts), threads or min(os.cpu_count() or 1, 8)
    best, cosine = np.full(n, -1, dtype=np.int64), np.full(n, tau - kernels.ROUNDING)
    with ThreadPoolExecutor(workers) as pool:
        starts, ranks, weights, rests, n_features = _unit_rows(texts, pool, workers)
        rows, index = kernels.with_prefixes(starts, ranks, weights, rests, n_features, tau)
        rooms = [kernels.scratch(n) for _ in range(workers)]
        for begin in range(0, n, BLOCK):
            end = min(begin + BLOCK, n)

            def share(number: int, begin: int = begin, end: int = end) -> None:
                kernels.nearest(begin + number, end, workers, rows, index, best, cosine, rooms[number])

            list(pool.map(share, range(workers)))
            kernels.lead(begin, end, rows, index, best, cosine, rooms[0])
    return np.where(best < 0, np.arange(n), best)


def _unit_rows(
    texts: pa.Array, pool: ThreadPoolExecutor, workers: int
) -> tuple[IntArray, kernels.Small, kernels.Floats, kernels.Floats, int]:
    """Sparse unit rows, rarest n-gram first: (starts, ranks of the n-grams, weights, rests, how many n-grams there are)."""
    words = [f" {text} " for text in texts.to_pylist()]
    letters = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in words])]).astype(np.int64)
    pieces = list(zip(edges := np.linspace(0, len(words), workers + 1).astype(np.int64).tolist(), edges[1:]))
    counted = list(pool.map(lambda piece: kernels.ngrams(letters, offsets[piece[0] : piece[1] + 1], N, 1 << BITS), pieces))
    starts = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part[0]) for part in counted]))])
    features = np.concatenate([part[1] for part in counted])
    document = np.bincount(features, minlength=1 << BITS)
    used = np.flatnonzero(document)
    idf, rank = np.empty(1 << BITS), np.empty(1 << BITS, dtype=np.int32)
    idf[used] = np.log((1 + len(words)) / (1 + document[used])) + 1
    # rarest first: the beginning of a row then says the most, and few rows share it
    rank[used[np.argsort(document[used], kind="stable")]] = np.arange(used.size)
    weights = np.concatenate([part[2] for part in counted]) * idf[features]
    ranks, rests = rank[features], np.empty_like(weights)
    list(pool.map(lambda piece: kernels.unit_rows(*piece, starts, ranks, weights, rests), pieces))
    return starts, ranks, weights, rests, int(used.size)

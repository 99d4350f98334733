"""Seconds for `similarity:TAU` with n-grams on distinct texts of three kinds.

    python benchmarks/similarity.py                  100,000 texts of each kind, tau .9, .8, .7 (minutes)
    python benchmarks/similarity.py --texts 10000    fewer

- words: 30 words each out of a vocabulary of 2,000 numbered ones ("w0" to "w1999"); 1 to 11 words of one of n / 20 bases
  are changed. Few different n-grams, each in many texts: the hardest kind for a join by n-grams.
- rooms: household observations as games print them, numbers and things drawn anew.
- records: JSON tool results of 300 to 900 characters, a few fields changed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from graft_core.states._tfidf import leaders

THINGS = ["apple", "mug", "knife", "plate", "book", "lamp", "pillow", "towel", "soap", "candle", "bread", "egg", "vase"]
PLACES = ["drawer", "cabinet", "shelf", "fridge", "sink", "table", "desk", "sofa", "bed", "stove", "counter", "dresser", "cart"]
CITIES = ["JFK", "SEA", "LAX", "ORD", "DEN", "ATL", "DFW", "BOS", "MIA", "PHX", "SFO", "IAH", "CLT", "MSP", "DTW", "PHL"]


def words(pick: random.Random, n: int) -> Iterator[str]:
    bases = [[pick.randrange(2000) for _ in range(30)] for _ in range(max(n // 20, 1))]
    while True:
        base = list(pick.choice(bases))
        for _ in range(pick.randint(1, 11)):
            base[pick.randrange(30)] = pick.randrange(2000)
        yield " ".join(f"w{word}" for word in base)


def rooms(pick: random.Random, n: int) -> Iterator[str]:
    while True:
        here = f"{pick.choice(PLACES)} {pick.randint(1, 12)}"
        seen = ", ".join(f"a {pick.choice(THINGS)} {pick.randint(1, 4)}" for _ in range(pick.randint(1, 7)))
        state = pick.choice(["is open", "is closed", "is on", "is off"])
        yield f"You arrive at {here}. The {here} {state}. On the {here}, you see {seen}."


def records(pick: random.Random, n: int) -> Iterator[str]:
    def flight() -> dict[str, object]:
        start, end = pick.sample(CITIES, 2)
        seats = {name: pick.randint(0, 20) for name in ("basic_economy", "economy", "business")}
        prices = {name: pick.randint(50, 900) for name in seats}
        day = f"2024-05-{pick.randint(1, 28):02d}"
        return {
            "flight_number": f"HAT{pick.randint(100, 299)}", "origin": start, "destination": end, "date": day,
            "status": pick.choice(["available", "delayed", "cancelled"]), "available_seats": seats, "prices": prices,
        }  # fmt: skip

    bases = [[flight() for _ in range(pick.randint(1, 3))] for _ in range(max(n // 20, 1))]
    while True:
        base = [dict(one) for one in pick.choice(bases)]
        for _ in range(pick.randint(1, 3)):
            one, other = pick.choice(base), flight()
            name = pick.choice(list(one))
            one[name] = other[name]
        yield json.dumps(base)


KINDS: dict[str, Callable[[random.Random, int], Iterator[str]]] = {"words": words, "rooms": rooms, "records": records}


def distinct(kind: str, n: int, seed: int = 0) -> list[str]:
    """n distinct texts of a kind, the same for the same seed."""
    texts: dict[str, None] = {}
    source = KINDS[kind](random.Random(seed), n)
    while len(texts) < n:
        texts[next(source)] = None
    return list(texts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a line takes more than a minute of wall time."""
    parser = argparse.ArgumentParser(description="seconds for similarity with n-grams")
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--kind", choices=list(KINDS), action="append")
    parser.add_argument("--tau", type=float, action="append")
    given = parser.parse_args(arguments)
    leaders(pa.array(["what is compiled", "on first use"], pa.large_string()), 0.9)
    print("| texts | of | characters | tau | leaders | s | processor s |\n|" + "---|" * 7, flush=True)
    slow = False
    for kind in given.kind or KINDS:
        made = distinct(kind, given.texts)
        mean = sum(map(len, made)) / max(len(made), 1)
        texts = pa.array(made, pa.large_string())
        for tau in given.tau or (0.9, 0.8, 0.7):
            began, used = time.perf_counter(), time.process_time()
            found = len(set(leaders(texts, tau).tolist()))
            took, used = time.perf_counter() - began, time.process_time() - used
            slow |= took > 60
            print(f"| {kind} | {len(made):,} | {mean:.0f} | {tau} | {found:,} | {took:.1f} | {used:.1f} |", flush=True)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m graft_core.bench TASK JSON`: one measurement in this process; prints one line of JSON."""

from __future__ import annotations

import sys

import orjson

from graft_core.bench.tasks import TASKS

if __name__ == "__main__":
    answer = TASKS[sys.argv[1]](**orjson.loads(sys.argv[2]))
    print(orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY).decode())

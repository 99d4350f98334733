"""One process: `python -m graft_app.job RUN live --env ...`, `RUN go-on [UPDATES]`, or a check by rollout, `- check ORDER`.

Its standard input is a pipe whose other end only the server has; when that closes, the run stops. A check keeps no file: it
tells on stdout how far it is, `{"done": 1, "total": 6}`, and at the end `{"check": {...}}`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from graft_core.errors import GraftError
from graft_core.live import keep

STOP_SECONDS: Final = 20.0
"""How long a run may take over the update in which it was asked to stop."""
GO_ON: Final = "go-on"
CHECK: Final = "check"
NO_RUN: Final = "-"


def end_with_parent(run: Path, stream: int = 0) -> None:
    """Wait until the pipe from the server closes; then ask the run to stop, and end it if it does not."""
    while True:
        try:
            if not os.read(stream, 1):
                break
        except OSError:
            break
    try:
        if run.name != NO_RUN:
            keep.ask(run, "stop")
            time.sleep(STOP_SECONDS)
    except (OSError, GraftError):
        pass
    os._exit(3)


def go_on(run: Path, updates: int | None) -> int:
    """Go on with a run by the settings it keeps."""
    from dataclasses import replace

    from graft_core.live.run import Stopped, load_settings, run_live

    try:
        settings = load_settings(run)
        run_live(replace(settings, updates=max(settings.updates, updates or 0)), run)
    except Stopped as stop:
        print(f"graft: {stop}", file=sys.stderr)
    except GraftError as error:
        print(f"graft: {error}", file=sys.stderr)
        return 1
    return 0


def check(order: str) -> int:
    """Check a step by rollout and tell on stdout."""
    import orjson

    from graft_app.check import order_of, perform

    def say(words: dict[str, object]) -> None:
        print(orjson.dumps(words).decode(), flush=True)

    try:
        say({"check": perform(order_of(order), lambda done, total: say({"done": done, "total": total}))})
    except GraftError as error:
        print(f"graft: {error}", file=sys.stderr)
        return 1
    return 0


def main(arguments: Sequence[str]) -> int:
    """`RUN live ...`, `RUN go-on [UPDATES]` or `- check ORDER`."""
    run, words = Path(arguments[0]), list(arguments[1:])
    threading.Thread(target=end_with_parent, args=(run,), daemon=True).start()
    if words[0] == GO_ON:
        return go_on(run, int(words[1]) if len(words) > 1 else None)
    if words[0] == CHECK:
        return check(words[1])
    from graft_core.cli import main as graft

    return graft(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

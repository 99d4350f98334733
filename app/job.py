"""One live run's process: `python -m graft_app.job RUN live --env ...`, or `RUN go-on [UPDATES]`.

Its standard input is a pipe whose other end only the server has; when that closes, the run stops.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from graft_core.errors import GraftError, InputError
from graft_core.live import keep

if TYPE_CHECKING:
    from graft_core.live.run import LiveSettings

STOP_SECONDS: Final = 20.0
"""How long a run may take over the update in which it was asked to stop."""
GO_ON: Final = "go-on"


def end_with_parent(run: Path, stream: int = 0) -> None:
    """Wait until the pipe from the server closes; then ask the run to stop, and end it if it does not."""
    while True:
        try:
            if not os.read(stream, 1):
                break
        except OSError:
            break
    try:
        keep.ask(run, "stop")
        time.sleep(STOP_SECONDS)
    except (OSError, GraftError):
        pass
    os._exit(3)


def go_on(run: Path, updates: int | None) -> int:
    """Go on with a run by the settings it keeps."""
    from dataclasses import replace

    from graft_core.live.run import Stopped, run_live

    try:
        settings = kept_settings(run)
        run_live(replace(settings, updates=max(settings.updates, updates or 0)), run)
    except Stopped as stop:
        print(f"graft: {stop}", file=sys.stderr)
    except GraftError as error:
        print(f"graft: {error}", file=sys.stderr)
        return 1
    return 0


def kept_settings(run: Path) -> LiveSettings:
    """The `LiveSettings` that a run directory keeps. `InputError` where it has none that this version reads."""
    from graft_core.live.policy import UpdateOptions
    from graft_core.live.run import LiveSettings
    from graft_core.live.start import PolicyOptions

    found = keep.read_json(run / keep.LIVE)
    try:
        words = dict(found["settings"])
        words |= {"policy": PolicyOptions(**words["policy"]), "update": UpdateOptions(**words["update"])}
        return LiveSettings(**{**words, "rules": tuple(words["rules"]), "seeds": tuple(words["seeds"])})
    except (TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{run.name}: holds no settings of a live run that this version reads ({error})") from error


def main(arguments: Sequence[str]) -> int:
    """`RUN live ...` or `RUN go-on [UPDATES]`."""
    run, words = Path(arguments[0]), list(arguments[1:])
    threading.Thread(target=end_with_parent, args=(run,), daemon=True).start()
    if words[0] == GO_ON:
        return go_on(run, int(words[1]) if len(words) > 1 else None)
    from graft_core.cli import main as graft

    return graft(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

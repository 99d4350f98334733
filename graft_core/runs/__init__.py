"""Run directories: written step by step from any loop, read back as one batch, followed while they grow."""

from __future__ import annotations

from graft_core.runs.follow import Follower, follow
from graft_core.runs.recorder import Recorder, record
from graft_core.runs.store import RunInfo, read_run, runs_in, step_files

__all__ = ["Follower", "Recorder", "RunInfo", "follow", "read_run", "record", "runs_in", "step_files"]

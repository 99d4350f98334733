"""Live runs as processes: the queue and its lanes, stopping and going on, and that nothing outlives the server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from app_pages import until

from graft_app import jobs as module
from graft_app.jobs import Jobs
from graft_core.errors import InputError
from graft_core.live import keep

SECONDS = 60.0
SLEEP = (sys.executable, "-c", "import sys; sys.stdin.buffer.read()")  # until the pipe closes
FAIL = (sys.executable, "-c", "import sys; sys.exit('seed 0: fine\\ngraft: the disk is full')")
SMALL = ["--env", "key-door", "--group-size", "4", "--turns", "20", "--estimator", "path_gae", "--seeds", "1"]
SMALL += ["--evaluate", "4"]
FULL_DISK = """
import resource, runpy, signal, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # a file that cannot grow, as on a full disk
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.argv[0] = "graft_app.job"
runpy.run_module("graft_app.job", run_name="__main__", alter_sys=True)
"""
BROKEN = """
class Broken:
    turns = 5
    def __init__(self): self.played = 0
    def reset(self, seed): self.left = 3; return "start"
    def step(self, action):
        self.left -= 1
        if action == "down": raise ValueError("the floor is missing")
        return f"left {self.left}", 0.0, self.left == 0
    def admissible(self): return ["up"] * (self.left > 1) + ["down"] * (self.left == 1) or ["up"]
    def state_key(self): return self.left
    def success(self): return True
"""
SERVER = """
import sys, time
from pathlib import Path
from graft_app.jobs import Jobs
jobs = Jobs(Path(sys.argv[1]))
name = jobs.start("key-door", sys.argv[2:], "me", True)
while jobs.view(name).state != "running":
    time.sleep(0.1)
print(jobs.view(name).status["pid"], flush=True)
time.sleep(600)
"""


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Callable[..., Jobs]]:
    """Makes queues in the test's folder and ends their processes."""
    made: list[Jobs] = []

    def make(*more: object, **named: object) -> Jobs:
        made.append(Jobs(tmp_path / "runs", *more, **named))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for jobs in made:
        jobs.close()


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z" if Path(f"/proc/{pid}/stat").exists() else False


def kept(folder: Path, state: str = "done", **more: object) -> Path:
    """A run directory as an earlier server left it."""
    folder.mkdir(parents=True)
    keep.write_json(folder / keep.LIVE, {"settings": {}})
    keep.write_json(folder / keep.STATUS, {"state": state, "pid": 2**22 + 7, "time": time.time(), **more})
    return folder


@pytest.mark.parametrize("name", ["", "..", "../other", "a/b", "/etc", ".hidden", "a" * 200, "a\nb", "a\\b", "ä"])
def test_a_name_is_never_a_path(queue: Callable[..., Jobs], name: str) -> None:
    with pytest.raises(InputError):
        queue().place(name)


def test_a_link_is_not_followed(queue: Callable[..., Jobs], tmp_path: Path) -> None:
    jobs = queue()
    jobs.folder.mkdir()
    (jobs.folder / "link").symlink_to(tmp_path)
    with pytest.raises(InputError, match="link"):
        jobs.place("link")


@pytest.mark.parametrize(
    "word",
    ["", "mine", "mine/grpo", "mine/../seed-0", "mine/grpo/..", "../grpo/seed-0", "mine/grpo/seed-0/steps", "mine//seed-0"],
)
def test_the_word_of_a_recorded_run_is_never_a_path(queue: Callable[..., Jobs], word: str) -> None:
    jobs = queue()
    (jobs.folder / "mine" / "grpo" / "seed-0" / "steps").mkdir(parents=True)
    with pytest.raises(InputError):
        jobs.recorded(word)


def test_the_word_of_a_recorded_run_names_its_directory(queue: Callable[..., Jobs], tmp_path: Path) -> None:
    jobs = queue()
    folder = jobs.folder / "mine" / "path_gae" / "seed-3"
    folder.mkdir(parents=True)
    assert jobs.recorded("mine/path_gae/seed-3") == folder
    with pytest.raises(InputError, match="is gone"):
        jobs.recorded("mine/path_gae/seed-4")
    (jobs.folder / "mine" / "grpo").symlink_to(tmp_path)
    (tmp_path / "seed-0").mkdir()
    with pytest.raises(InputError, match="a link to another place"):
        jobs.recorded("mine/grpo/seed-0")


def test_the_quick_lane_does_not_wait_for_long_runs_and_visitors_take_turns(queue: Callable[..., Jobs]) -> None:
    jobs = queue(1, 1, SLEEP)
    first, second = (jobs.start("x", [], "one", False) for _ in range(2))
    third = jobs.start("x", [], "two", False)
    quick = jobs.start("x", [], "two", True)
    states = {name: jobs.view(name) for name in (first, second, third, quick)}
    assert [view.state for view in states.values()] == ["starting", "waiting", "waiting", "starting"]
    assert [states[name].before for name in (second, third)] == [0, 1]
    jobs.start("x", [], "two", True)
    jobs.ask(second, "stop")
    assert jobs.view(second).state == "stopped"
    jobs.ask(first, "stop")  # no run directory, so nothing to wait for
    until(lambda: jobs.view(third).state == "starting")
    assert jobs.view(first).state == "stopped"  # as it was asked to; nobody is told of a signal
    assert jobs.of("one") == [second, first]


def test_what_a_model_says_of_itself_is_kept_without_where_it_lies(queue: Callable[..., Jobs]) -> None:
    said = "seed 0 grpo: update 1/2\n/home/me/model: 0.1 million weights on cpu in float32\n"
    jobs = queue(1, 1, (sys.executable, "-c", f"import sys; sys.stderr.write({said!r} * 2)"))
    name = jobs.start("x", [], "one", True)
    until(lambda: not jobs.view(name).active)
    assert jobs.notes(name) == ["0.1 million weights on cpu in float32"]
    assert jobs.notes("nobody-knows-it") == []


def test_who_has_no_process_goes_first(queue: Callable[..., Jobs]) -> None:
    jobs = queue(2, 1, SLEEP)
    first, other = (jobs.start("x", [], "one", False) for _ in range(2))
    again, late = jobs.start("x", [], "one", False), jobs.start("x", [], "two", False)
    jobs.ask(other, "stop")
    until(lambda: jobs.view(late).state == "starting")
    assert jobs.view(again).state == "waiting"
    assert jobs.view(first).state == "starting"


def test_a_run_that_takes_long_leaves_the_quick_lane(queue: Callable[..., Jobs], monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = queue(1, 1, SLEEP)
    jobs.start("x", [], "one", True)
    second = jobs.start("x", [], "two", True)
    assert jobs.view(second).state == "waiting"
    monkeypatch.setattr(module, "QUICK_SECONDS", 0.0)
    time.sleep(0.01)
    monkeypatch.setattr(module.Job, "lane", lambda job: "long" if job.running else "quick")
    assert jobs.view(second).state == "starting"


def test_the_queue_is_bounded(queue: Callable[..., Jobs]) -> None:
    jobs = queue(1, 1, SLEEP)
    for _ in range(1 + module.MOST_WAITING_EACH):
        jobs.start("x", [], "one", False)
    with pytest.raises(InputError, match="are waiting already"):
        jobs.start("x", [], "one", False)
    jobs.start("x", [], "two", False)


def test_a_run_that_breaks_off_says_why_in_its_last_line(queue: Callable[..., Jobs]) -> None:
    jobs = queue(1, 1, FAIL)
    name = jobs.start("x", [], "one", True)
    until(lambda: not jobs.view(name).active)
    assert (jobs.view(name).state, jobs.view(name).why) == ("failed", "the disk is full")
    with pytest.raises(InputError, match="nothing to go on with"):
        jobs.go_on(name, "one", True)


def test_a_wrong_environment_is_the_librarys_own_sentence(queue: Callable[..., Jobs]) -> None:
    jobs = queue()
    name = jobs.start("nowhere", ["--env", "nowhere"], "one", True)
    until(lambda: not jobs.view(name).active)
    assert jobs.view(name).why.startswith("unknown environment 'nowhere'")


def test_an_environment_that_raises_ends_the_run_with_its_own_words(
    queue: Callable[..., Jobs], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_game.py").write_text(BROKEN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    jobs = queue()
    name = jobs.start("their_game:Broken", ["--env", "their_game:Broken", "--updates", "3", "--seeds", "1"], "one", True)
    until(lambda: not jobs.view(name).active)
    assert jobs.view(name).state == "failed"
    assert "the floor is missing" in jobs.view(name).why
    steps = list((jobs.place(name)).rglob("steps/*.jsonl"))
    assert steps and len(steps[0].read_text().splitlines()) > 1  # what was sampled is kept


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on file sizes")
def test_a_full_disk_is_said_and_keeps_what_there_is(queue: Callable[..., Jobs]) -> None:
    jobs = queue(program=(sys.executable, "-c", FULL_DISK))
    name = jobs.start("key-door", [*SMALL, "--updates", "1000"], "one", True)
    until(lambda: not jobs.view(name).active)
    view = jobs.view(name)
    assert view.state == "failed"
    assert "cannot be written" in view.why or "too large" in view.why.lower(), view.why
    assert keep.read_curve(jobs.place(name) / "path_gae" / "seed-0")


def test_stop_keeps_what_was_done_and_continue_goes_on_from_there(queue: Callable[..., Jobs]) -> None:
    jobs = queue()
    name = jobs.start("key-door", [*SMALL, "--updates", "100000"], "one", True)
    until(lambda: (jobs.view(name).status.get("done") or 0) >= 3)
    jobs.ask(name, "pause")
    until(lambda: jobs.view(name).state == "paused")
    jobs.ask(name, "stop")
    until(lambda: not jobs.view(name).active)
    assert jobs.view(name).state == "stopped"
    done = jobs.view(name).status["done"]
    live = keep.read_json(jobs.place(name) / keep.LIVE)
    live["settings"]["updates"] = done + 3
    keep.write_json(jobs.place(name) / keep.LIVE, live)
    jobs.go_on(name, "one", True)
    until(lambda: not jobs.view(name).active)
    assert jobs.view(name).state == "done"
    rows = keep.read_curve(jobs.place(name) / "path_gae" / "seed-0")
    assert [row["update"] for row in rows] == list(range(1, done + 4))
    jobs.go_on(name, "one", True, updates=done + 5)
    until(lambda: not jobs.view(name).active)
    assert len(keep.read_curve(jobs.place(name) / "path_gae" / "seed-0")) == done + 5
    jobs.remove(name)
    assert jobs.view(name).state == "unknown"
    assert not jobs.place(name).exists()


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is a POSIX signal")
def test_the_process_ends_when_its_server_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVER, str(tmp_path / "runs"), *SMALL, "--updates", "100000"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert server.stdout is not None
    pid = int(server.stdout.readline())
    assert not gone(pid)
    server.send_signal(signal.SIGKILL)
    server.wait()
    server.stdout.close()
    until(lambda: gone(pid))
    jobs = Jobs(tmp_path / "runs")
    [name] = jobs.on_disk()
    assert jobs.view(name).state == "stopped"


def test_runs_of_an_earlier_server(queue: Callable[..., Jobs]) -> None:
    jobs = queue()
    kept(jobs.folder / "finished")
    kept(jobs.folder / "cut", "running")
    kept(jobs.folder / "broken", "failed", why="the disk is full")
    kept(jobs.folder / "elsewhere", "running", pid=os.getpid())
    assert {name: jobs.view(name).state for name in jobs.on_disk()} == {
        "finished": "done", "cut": "interrupted", "broken": "failed", "elsewhere": "elsewhere",
    }  # fmt: skip
    assert jobs.view("broken").why == "the disk is full"
    with pytest.raises(InputError, match="still going on"):
        jobs.remove("elsewhere")


def test_only_the_latest_runs_from_the_page_are_kept(queue: Callable[..., Jobs], monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = queue(1, 1, SLEEP)
    monkeypatch.setattr(module, "MOST_KEPT", 3)
    for number in range(4):
        folder = kept(jobs.folder / f"key-door-0101-00000{number}-0000000{number}")
        os.utime(folder, (number, number))
    mine = kept(jobs.folder / "mine")
    os.utime(mine, (0, 0))
    jobs.start("key-door", [], "one", True)
    left = {path.name.rpartition("-")[2] for path in jobs.folder.iterdir()}
    assert left == {"00000002", "00000003", "mine"}

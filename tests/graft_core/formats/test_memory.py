"""How much memory and time a load takes: one document at a time, and no small file that grows to a gigabyte."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sample_files import EVAL, ROWS, TAU, inspect_eval, lines
from step_rows import codes

from graft_core.errors import InputError
from graft_core.formats import jsonio, load
from graft_core.formats._parquet import check_decoded, decoded_bytes
from graft_core.formats.jsonio import TooMuchJson, loads, parsed_bytes
from graft_core.formats.source import Source

CHILD = """
import resource, sys
from graft_core.errors import InputError
from graft_core.formats import load
try:
    said = load(sys.argv[1]).n_rollouts
except InputError as error:
    said = str(error)
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_maxrss * 1024, used.ru_utime + used.ru_stime, said)
"""
LARGE = 64_000_000


def peak_of_load(folder: Path) -> int:
    load(folder)  # what is imported and kept once does not count
    tracemalloc.start()
    load(folder)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_only_one_document_is_held_at_a_time(tmp_path: Path) -> None:
    ignored = list(range(1000, 20_000))  # 0.7 MB as Python values; no reader keeps it
    peaks = []
    for n in (3, 15):
        folder = tmp_path / str(n)
        folder.mkdir()
        for i in range(n):
            rows = [{**row, "task_id": f"{i} {row['task_id']}", "token_ids": ignored} for row in TAU[:1]]
            (folder / f"{i}.json").write_text(json.dumps(rows, indent=1))
        peaks.append(peak_of_load(folder))
    assert peaks[1] < peaks[0] + 1_000_000, "12 further documents of 0.7 MB each leave nothing behind"


def test_nothing_parsed_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.json").write_text(json.dumps(TAU))
    (tmp_path / "b.jsonl").write_bytes(lines(ROWS))
    forgotten: list[Source] = []
    forget = Source.forget
    monkeypatch.setattr(Source, "forget", lambda self: (forgotten.append(self), forget(self))[1])
    load(tmp_path)
    assert len(forgotten) == 2 and not any({"head", "start"} & set(source.__dict__) for source in forgotten)


@pytest.mark.parametrize(
    "unit", [b"[],", b"{},", b'{"":0},', b"1.5,", b"12345,", b'"ab",', b'{"a":[]},', b"[[]],", b'["a",{"b":null}],']
)
def test_the_memory_of_a_parsed_text_is_not_underrated(unit: bytes) -> None:
    data = b"[" + unit * (100_000 // len(unit)) + b"0]"
    tracemalloc.start()
    value, _ = loads(data)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(value) > 1 and taken < parsed_bytes(data) < 3.1 * taken + len(data)
    assert parsed_bytes(data) == parsed_bytes(data, exact=True)


def test_brackets_inside_of_texts_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonio, "BLOCK_BYTES", 7)  # texts that go on in the next block
    text = 'a "quoted" \\ [1, {"b": 2}], ' * 50
    data = json.dumps([text, {"k": [text]}]).encode()
    bare = b'["",{"k":[""]}]'
    assert parsed_bytes(data, exact=True) - len(data) == parsed_bytes(bare) - len(bare)
    assert parsed_bytes(data) > 10 * parsed_bytes(bare)


def test_a_text_of_brackets_is_refused_in_a_document_a_line_and_a_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("SMALL_TEXT", 1000), ("ALWAYS_PARSED", 100_000), ("BLOCK_BYTES", 1 << 20)):
        monkeypatch.setattr(jsonio, name, value)
    monkeypatch.setattr("graft_core.formats.canonical.SMALL_TEXT", 1000)
    brackets = b"[" + b"[]," * 20_000 + b"0]"
    with pytest.raises(TooMuchJson, match=r"60,003 bytes of JSON are mostly brackets and commas, which would take 2 MB"):
        loads(brackets)
    with pytest.raises(TooMuchJson):
        loads(brackets[:-2] + b"NaN]")
    (tmp_path / "a.json").write_bytes(brackets)
    with pytest.raises(InputError, match=r"a\.json: its 60,003 bytes of JSON are mostly brackets"):
        load(tmp_path / "a.json")
    (tmp_path / "b.jsonl").write_bytes(lines(ROWS) + b'{"rollout_id": 1, "metadata": ' + brackets + b"}\n")
    batch, report = load(tmp_path / "b.jsonl", report=True)
    assert batch.n_rollouts == 2 and "mostly brackets" in report.rejections[0].reason and report.rejected == 1
    member = {**EVAL, "samples/3_epoch_1.json": b'{"id": 3, "messages": [], "extra": ' + brackets + b"}"}
    (tmp_path / "c.eval").write_bytes(inspect_eval(member, zipfile.ZIP_DEFLATED))
    batch, report = load(tmp_path / "c.eval", report=True)
    assert batch.n_rollouts == 3 and "mostly brackets" in report.rejections[0].reason


def test_a_file_of_which_nothing_can_be_used_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graft_core.formats.rows.HOPELESS", 300)
    good = lines(ROWS)
    (tmp_path / "a.jsonl").write_bytes(good + b"no\n" * 1_000_000)
    batch, report = load(tmp_path / "a.jsonl", report=True)
    assert batch.n_steps == 4 and report.read == 4 + report.rejected < 1000
    assert codes(report)["file_not_read_to_end"] == 1 and "was not read further" in report.warnings[-1].sentence
    (tmp_path / "b.jsonl").write_bytes(good + b"no\n" * 299 + good)
    batch, report = load(tmp_path / "b.jsonl", report=True)
    assert "file_not_read_to_end" not in codes(report)
    assert (batch.n_steps, report.read, report.rejected) == (8, 307, 299), "a few hundred bad lines end nothing"


def test_a_compressed_file_has_no_more_lines_than_its_size_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graft_core.formats.canonical.FEWEST_STEPS", 1000)
    row = b'{"group_id": "g", "rollout_id": "r", "action": "a"}\n'
    many = row * 60_000  # 3 MB that pack into 9 kB
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(many))
    batch, report = load(tmp_path / "a.jsonl.gz", report=True)
    assert 0 < batch.n_steps < 60_000 and codes(report)["file_not_read_to_end"] == 1
    assert "far more than rollouts of its size" in report.rejections[-1].reason
    (tmp_path / "a.jsonl").write_bytes(many)
    assert load(tmp_path / "a.jsonl").n_steps == 60_000, "a file that is as large as it says is read"


def repeated(n: int, text: str) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array([text]))


def test_parquet_texts_are_counted_as_often_as_they_stand(tmp_path: Path) -> None:
    flat = repeated(1000, "x" * 100)
    lists = pa.ListArray.from_arrays(pa.array(range(0, 1001, 10), pa.int32()), flat)
    assert decoded_bytes(flat) == 100_000 == decoded_bytes(lists) == decoded_bytes(pa.StructArray.from_arrays([flat], ["a"]))
    assert decoded_bytes(pa.array([1.0, 2.0])) == 16
    (tmp_path / "small").write_bytes(b"PAR1")
    assert check_decoded(pa.table({"a": flat, "b": flat}), Source(tmp_path / "small")) == 200_000
    with pytest.raises(InputError, match="decompresses to far more than text does"):
        check_decoded(pa.table({"a": repeated(70_000, "x" * 1000)}), Source(tmp_path / "small"))


def test_a_parquet_file_cannot_say_that_it_has_any_number_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({name: repeated(50_000, "a") for name in ("rollout_id", "observation", "action")}), path)
    assert load(path).n_steps == 50_000
    monkeypatch.setattr("graft_core.formats._parquet.FEWEST_STEPS", 1000)
    with pytest.raises(InputError, match=r"it says that it has 50,000 rows; of [\d,]+ bytes at most [\d,]+ are read"):
        load(path)


def of(unit: bytes) -> bytes:
    return unit * (LARGE // len(unit))


NASTY: dict[str, Callable[[], bytes]] = {
    "lists": lambda: b"[" + of(b"[],") + b"0]",
    "objects": lambda: b"[" + of(b'{"":0},') + b"0]",
    "steps and objects": lambda: b'[{"observation":"o","action":"a","metadata":[' + of(b'{"":0},') + b"0]}]",
    "numbers": lambda: b"[" + of(b"1.5,") + b"0]",
    "long numbers": lambda: b"[" + b"1" * 30 + b"," + of(b"[],") + b"0]",
    "not a number": lambda: b"[NaN," + of(b'{"":0},') + b"0]",
    "wide letters": lambda: b'["\\ud800","' + of("\U0001f600".encode()) + b'"]',
    "one line": lambda: lines(ROWS) + b'{"rollout_id":1,"metadata":[' + of(b"[],") + b"0]}",
    "bad lines": lambda: lines(ROWS) + of(b"x\n"),
    "other lines": lambda: lines(ROWS) + of(b"[]\n"),
    "blank lines": lambda: lines(ROWS) + of(b"\n"),
    "bad steps": lambda: of(b'{"rollout_id":1,"step":"x"}\n'),
    "steps": lambda: of(b'{"rollout_id":1,"step":0,"action":"a"}\n'),
    "other names": lambda: of(b'{"uid":1,"traj_uid":1,"action":"a","a":1}\n'),
    "chats": lambda: of(b'{"messages":[{"role":"assistant","content":""}]}\n'),
}


@pytest.mark.audit
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("packed", ["plain", "gz", "zst", "zip"])
@pytest.mark.parametrize("name", NASTY)
def test_sixty_four_megabytes_of_anything_stay_under_a_gigabyte(tmp_path: Path, name: str, packed: str) -> None:
    data = NASTY[name]()
    if packed == "gz":
        data = gzip.compress(data, 1)
    elif packed == "zst":
        data = bytes(pa.Codec("zstd").compress(data, asbytes=True))
    elif packed == "zip":
        data = inspect_eval({**EVAL, "samples/9_epoch_1.json": b'{"id":9,"messages":[],"x":' + data + b"}"})
    (tmp_path / "nasty").write_bytes(data)
    done = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "nasty")], capture_output=True, text=True, check=True)
    peak, seconds, said = done.stdout.split(maxsplit=2)
    limit = 1.5e9 if packed == "plain" and name == "chats" else 1e9  # 1.3 million rollouts that are really there
    assert int(peak) < limit, f"{int(peak) / 1e6:,.0f} MB, {seconds} s: {said}"
    if packed != "plain":
        assert float(seconds) < 10, f"{seconds} s: {said}"  # a second of it is the start of Python

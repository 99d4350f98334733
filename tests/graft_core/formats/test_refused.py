"""Files that hold no rollouts or must not be opened: one sentence that names what was found and what was expected."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import zipfile
from pathlib import Path

import pytest

from graft_core.errors import InputError, UsageError
from graft_core.formats import WARNINGS, formats, load

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:8fbfe3\nsize 2165455\n"


def refusal(path: Path) -> str:
    """The sentence with which a file is refused."""
    with pytest.raises(InputError) as error:
        load(path)
    text = str(error.value)
    assert path.name in text and "\n" not in text
    return text


def test_git_lfs_pointer(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(POINTER)
    assert "Git LFS pointer" in refusal(path) and "git lfs pull" in refusal(path)


def test_the_real_pointer(test_data: Path) -> None:
    assert "Git LFS pointer" in refusal(test_data / "bad" / "git_lfs_pointer_results.jsonl")


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_empty_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(content)
    assert "empty" in refusal(path)


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.pkl"
    path.write_bytes(pickle.dumps({"observation": 1}))
    assert "pickle" in refusal(path) and "runs code" in refusal(path) and "canonical" in refusal(path)
    with zipfile.ZipFile(tmp_path / "rollouts.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"x")
    assert "torch file" in refusal(tmp_path / "rollouts.pt")
    for name, opening in (("rollouts.pkl", "pickle.load(file)"), ("rollouts.pt", "torch.load(file)")):
        assert opening in refusal(tmp_path / name) and "rec.step(" in refusal(tmp_path / name), "the recipe"


@pytest.mark.parametrize("name", ["trajectories.yaml", "group.yml", "group.yaml.gz"])
def test_yaml_is_refused_with_a_recipe(tmp_path: Path, name: str) -> None:
    text = b"reward: 1.0\nmessages_and_choices:\n- role: user\n  content: hi\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    said = refusal(path)
    assert "this is YAML" in said and "yaml.safe_load(" in said and "json.dump(" in said and "(3)" in said, "the recipe"
    with pytest.raises(InputError, match=r"no file of rollouts found; .*this is YAML"):
        load(tmp_path)


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-be"])
def test_utf16_is_named(tmp_path: Path, coding: str) -> None:
    row = '{"rollout_id": "r", "step": 0, "observation": "o", "action": "a"}\n'
    path = tmp_path / "rows.jsonl"
    path.write_bytes(("\ufeff" if coding == "utf-16-be" else "").encode(coding) + row.encode(coding))
    assert "UTF-16" in refusal(path) and "save it as UTF-8" in refusal(path)


def test_json_under_the_name_of_yaml_is_read(tmp_path: Path) -> None:
    (tmp_path / "rows.yaml").write_text('{"rollout_id": "r", "step": 0, "observation": "o", "action": "a"}\n')
    assert load(tmp_path / "rows.yaml").n_steps == 1


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("hello\nworld\n", "neither JSON nor Parquet"),
        ("null\n", "found a JSON value without objects;"),
        ('"text"', "found a JSON value without objects;"),
        ("3 apples", "neither JSON nor Parquet"),
        ("{}", "found JSON lines without keys;"),
        ("[{}]", "a JSON list of 1 objects without keys;"),
        ('{"prompt": 1, "completion": 2}\n{"prompt": 1}\n', "JSON lines with the keys completion, prompt"),
        ('{"prompt":\n 1}', "one JSON object with the keys prompt"),
        ('[{"role": "user"}]', "a JSON list of 1 objects with the keys role"),
        ("[1, 2]", "a JSON list without objects"),
        ('[{"task_id": 0, "reward": 1, "traj": [{"ro', "broken JSON"),
    ],
)
def test_unknown_formats_say_what_was_found_and_expected(tmp_path: Path, content: str, found: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    text = refusal(path)
    assert found in text and "expected one of " in text and "canonical, " in text and "tau-bench" in text


def test_streams_and_devices_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        assert "a stream or a device, which is not read; save" in refusal(path)


@pytest.mark.parametrize("path", ["", ["rows.jsonl", ""]])
def test_an_empty_path_is_not_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | list[str]
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"rollout_id": "r", "step": 0, "observation": "o", "action": "a"}\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="a path is the empty text"):
        load(path)
    assert load(".").n_steps == 1


def test_a_damaged_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(b"\x1f\x8b" + b"garbage" * 10)
    assert "cannot be read" in refusal(path)


def test_a_compressed_file_that_is_cut_off_gives_what_stood_before(tmp_path: Path) -> None:
    import random

    chance = random.Random(0)
    rows = [
        {"group_id": "g", "rollout_id": f"r{i}", "step": 0, "observation": str(chance.random()), "action": "a", "outcome": 1}
        for i in range(5000)
    ]
    whole = gzip.compress("".join(json.dumps(r) + "\n" for r in rows).encode())
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    batch, report = load(path, report=True)
    assert 2000 < batch.n_steps < 5000 and 1 <= report.rejected <= 2
    assert "cut off" in report.rejections[-1].reason


def test_a_compression_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graft_core.formats.source.FEWEST_EXPANDED", 1 << 20)
    row = b'{"group_id": "g", "rollout_id": "r", "step": 0, "observation": "o", "action": "a", "outcome": 1}\n'
    (tmp_path / "lines.jsonl.gz").write_bytes(gzip.compress(row + b" " * (1 << 24)))
    batch, report = load(tmp_path / "lines.jsonl.gz", report=True)
    assert batch.n_steps == 1 and "decompresses to far more" in report.rejections[-1].reason
    (tmp_path / "list.json.gz").write_bytes(gzip.compress(b"[" + b" " * (1 << 24) + b"]"))
    assert "decompresses to far more" in refusal(tmp_path / "list.json.gz")


def test_a_line_too_long_to_be_a_step_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graft_core.formats.source.BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr("graft_core.formats.source.LONGEST_LINE", 1 << 14)
    row = '{"group_id": "g", "rollout_id": "%s", "step": 0, "observation": "%s", "action": "a", "outcome": 1}\n'
    path = tmp_path / "rows.jsonl"
    path.write_text(row % ("r1", "o") + row % ("r2", "o" * (1 << 20)) + row % ("r3", "o" * 5000))
    batch, report = load(path, report=True)
    assert batch.rollout_ids == ["r1", "r3"] and report.rejected == 1 and report.rejections[0].where.endswith(":2")


def test_detection_ignores_the_name(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_text('{"group_id": "g", "rollout_id": "r", "step": 0, "observation": "o", "action": "a", "outcome": 1}\n')
    assert load(path, report=True)[1].formats == ("canonical",)


def test_every_format_says_what_it_is() -> None:
    assert {"canonical", "canonical-parquet", "tau-bench", "verl-agent"} <= set(formats())
    for name, found in formats().items():
        assert (
            found.name == name
            and found.meaning
            and found.detected_by
            and found.unit in ("line", "row", "record", "item", "file")
        )


def test_the_package_can_be_called_like_the_function() -> None:
    import graft_core.formats

    assert graft_core.formats() == formats()


def test_every_warning_code_is_explained_and_in_use() -> None:
    import graft_core.formats as package

    sources = [path.read_text() for path in Path(package.__path__[0]).glob("*.py") if path.name != "codes.py"]
    for code, meaning in WARNINGS.items():
        assert meaning.endswith(".") and any(f'"{code}"' in source for source in sources), code

"""--success-when: rules that say which rollouts succeeded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sample_files import lines, nemo
from step_rows import row

from graft_core.cli import main
from graft_core.errors import UsageError
from graft_core.formats import load, write_jsonl
from graft_core.formats.success import Rule, parse_rule
from graft_core.rollouts import LoadReport, RolloutBatch

Loader = Callable[..., tuple[RolloutBatch, LoadReport]]
ROWS = [
    row(0, "g", "low", outcome=0.2, success=True, acc=1, passed=True),
    row(0, "g", "high", outcome=0.8, acc="0.5", passed=False),
    row(0, "g", "none", outcome=None, acc=None),
    row(0, "g", "one", outcome=1.0 - 5e-7, acc=2.5, passed="true"),
    row(1, "g", "one", outcome=1.0 - 5e-7),
]


@pytest.mark.parametrize(
    ("rule", "success"),
    [
        (None, [1, 0, None, 1]),
        ("reward >= 1", [0, 0, None, 1]),
        ("outcome>0.2", [0, 1, None, 1]),
        ("score >= 0.5", [0, 1, None, 1]),
        ("outcome < 0.8", [1, 0, None, 0]),
        ("outcome <= .8", [1, 1, None, 0]),
        ("outcome == 1", [0, 0, None, 1]),
        ("outcome = 1", [0, 0, None, 1]),
        ("outcome != 1", [1, 1, None, 0]),
        ("acc >= 1", [1, 0, None, 1]),
        ("passed == true", [1, 0, None, 1]),
        ("steps <= 1", [1, 1, 1, 0]),
    ],
)
def test_rules(loaded: Loader, rule: str | None, success: list[int | None]) -> None:
    batch, report = loaded(ROWS, success_when=rule)
    assert [None if v != v else int(v) for v in batch.success.tolist()] == success
    if rule:
        known = [v for v in success if v is not None]
        assert f"({sum(known)} of 4 rollouts succeeded, {4 - len(known)} unknown)" in report.notes[-1]


@pytest.mark.parametrize(
    "text",
    [
        "", "reward", "reward >=", ">= 1", "reward >= one", "reward >= 1 or True", "__import__('os') == 1 2", "reward >= nan",
        "reward >= inf", "reward => 1", "a >= " + "1" * 300,
    ],
)  # fmt: skip
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(UsageError, match="is no rule; expected NAME OP NUMBER, such as 'reward >= 1'"):
        parse_rule(text)


def test_a_rule_in_words() -> None:
    assert str(parse_rule(" scores.judge>=0.5 ")) == "scores.judge >= 0.5" and parse_rule("x=1") == Rule("x", "==", 1.0)


def test_a_name_that_nobody_has(loaded: Loader) -> None:
    with pytest.raises(UsageError, match=r"no value 'nope'; there are outcome, steps, .*acc"):
        loaded(ROWS, success_when="nope > 1")


def test_an_infrastructure_error_stays_unknown(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_bytes(lines([nemo(0, 0, 0.0, exception_type="E"), nemo(0, 1, 0.0)]))
    batch = load(tmp_path / "r.jsonl", success_when="reward >= 1")
    assert batch.success[0] != batch.success[0] and batch.success[1] == 0.0


def test_a_rule_survives_the_copy(loaded: Loader, tmp_path: Path) -> None:
    batch, _ = loaded(ROWS, success_when="outcome >= 0.5")
    write_jsonl(batch, tmp_path / "copy.jsonl")
    assert str(load(tmp_path / "copy.jsonl").success.tolist()) == str(batch.success.tolist())


def test_the_command_line_says_the_rule_beside_the_counts(
    loaded: Loader, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded(ROWS)
    assert main(["inspect", str(tmp_path / "rows.jsonl"), "--success-when", "reward >= 0.5"]) == 0
    assert "2 succeeded, 1 failed, 1 unknown (reward >= 0.5)" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "rows.jsonl"), "--success-when", "reward"]) == 2

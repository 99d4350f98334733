"""Cells and names: formulas, hidden marks, file systems."""

from __future__ import annotations

import hostile
import pytest

from graft_core.takeaway.guard import guard, visible, xml_text
from graft_core.takeaway.names import file_name, stem


@pytest.mark.parametrize("text", [*hostile.TEXTS, "＝1+1", "-3", "\n=1", "\r=1"])
def test_no_guarded_cell_begins_as_a_formula(text: str) -> None:
    cell = guard(text)
    assert cell.lstrip()[:1] not in tuple("=+-@＝＋－＠")
    assert not any(ord(c) < 9 or 0x202A <= ord(c) <= 0x202E or 0x2066 <= ord(c) <= 0x2069 for c in cell)


@pytest.mark.parametrize("value", ["go to kitchen", "3 = 3", "", "'quoted", "a\nb\tc", -1.5, None, True])
def test_a_harmless_cell_stays_as_it_is(value: object) -> None:
    assert guard(value) == value


def test_marks_that_hide_or_turn_text_are_shown() -> None:
    assert visible("a\u202eb\u061c\u0000c\u2066") == "a\ufffdb\ufffd\ufffdc\ufffd"
    assert visible("line\nnext\ttab é 漢") == "line\nnext\ttab é 漢"


def test_xml_text_keeps_all_that_xml_can_hold() -> None:
    assert xml_text("a\u0000\u000b\ufffe\ud800b") == "a\ufffd\ufffd\ufffd\ufffdb"
    assert xml_text("\t\n\r<&>\u202e\U0001f600") == "\t\n\r<&>\u202e\U0001f600"


@pytest.mark.parametrize("text", [*hostile.TEXTS, "../../etc/passwd", "CON", "a/b\\c:d", ""])
def test_a_file_name_is_letters_digits_and_dashes(text: str) -> None:
    name = file_name("rollouts", text, ending="svg")
    assert name.endswith(".svg") and len(name) < 80
    assert set(name.removesuffix(".svg")) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_different_tasks_get_different_file_names() -> None:
    names = [file_name("x", text, ending="csv") for text in (*hostile.TEXTS, "task 1", "task+1", "Task?1")]
    assert len(set(names)) == len(names)
    assert file_name("household", "cool apple", ending="svg") == "household-cool-apple.svg"
    assert stem("folder/rollouts.jsonl.gz") == "rollouts"

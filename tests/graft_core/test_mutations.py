"""Do the tests notice when the mathematics is broken? (tests/mutate.py puts 50 faults in, one at a time)"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.audit
@pytest.mark.timeout(7200)
def test_the_tests_catch_deliberate_faults() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tests" / "mutate.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_fault_can_still_be_put_in() -> None:
    """A fault whose text has gone would be counted as nothing."""
    listed = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "mutate.py"), "--check"], capture_output=True, text=True
    )
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.strip() == "50 faults fit"

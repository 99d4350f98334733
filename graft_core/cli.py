"""The `graft` command: finds its subcommands in `graft_core.commands` and turns errors into one sentence.

Exit status: 0 fine, 1 the input could not be used, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

from graft_core import __version__
from graft_core.errors import InputError, UsageError
from graft_core.registry import members


def parser() -> argparse.ArgumentParser:
    """The whole command line, one subparser per file of `graft_core.commands`."""
    import graft_core.commands as package

    top = argparse.ArgumentParser(prog="graft", description="Which step earned the outcome? Credit for agent rollouts.")
    top.add_argument("--version", action="version", version=f"graft-lab {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in members(package, "COMMAND").values():
        sub = commands.add_parser(command.name, help=command.help, description=command.help, allow_abbrev=False)
        command.arguments(sub)
        sub.set_defaults(run=command.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    given = parser().parse_args(arguments)
    warnings.showwarning = _warn
    try:
        status: int = given.run(given)
        sys.stdout.flush()
        return status
    except UsageError as error:
        return _fail(str(error), 2)
    except InputError as error:
        return _fail(str(error), 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone: nothing left to say
        return 0
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 1)
    except KeyboardInterrupt:
        return _fail("stopped", 130)


def _warn(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: object = None, line: str | None = None
) -> None:
    """What the data are doubtful about as one line; other warnings are not for people who only use the tool."""
    if category.__name__ == "DataWarning":
        print(f"graft: warning: {message}", file=sys.stderr)


def _fail(sentence: str, status: int) -> int:
    print(f"graft: {sentence}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())

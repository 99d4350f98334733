"""The documentation page of the estimators, from the registry: `python -m graft_core.credit._page > docs/estimators.md`."""

from __future__ import annotations

import inspect
import sys

from graft_core.credit import Estimator, estimators
from graft_core.options import Option


def _option(option: Option) -> str:
    default = "not set" if option.default is None else f"{option.default}"
    return f"| `{option.name}` | {option.meaning} | {option.allowed} | {default} |"


def _section(member: Estimator) -> str:
    module = sys.modules[member.apply.__module__]
    text = inspect.getdoc(module) or ""
    lines = [f"## `{member.name}` · {member.title}", "", f"{member.meaning[0].upper()}{member.meaning[1:]}.", ""]
    if not member.fixed:
        lines += [text, ""]
    needs = f" Needs the step columns {', '.join(member.needs)}." if member.needs else ""
    lines += [f"Uses: {member.uses}.{needs}", ""]
    if member.options:
        lines += ["| option | meaning | allowed | default |", "|---|---|---|---|", *map(_option, member.options), ""]
    return "\n".join(lines)


def page() -> str:
    """The whole page as Markdown."""
    known = estimators()
    head = [
        "# Estimators", "",
        "One float per step. Built from the registry by `python -m graft_core.credit._page`; the command line's flags and",
        "the app's controls come from the same place. On the command line:",
        "`graft credit FILE --estimator NAME --OPTION VALUE`.", "",
        "| name | what it does | source |", "|---|---|---|",
        *(f"| `{m.name}` | {m.meaning} | {m.source} |" for m in known.values()), "",
    ]
    return "\n".join(head) + "\n" + "\n".join(_section(m) for m in known.values())


if __name__ == "__main__":
    sys.stdout.write(page())

"""What is on screen as a command and as Python: the same settings, in words that can be pasted."""

from __future__ import annotations

import shlex
from pathlib import PurePath

from graft_core.credit import estimators
from graft_core.settings import LOOK, Settings
from graft_core.states.compose import split_rules


def command(settings: Settings, path: str, group_by: str | None = None, *, json: bool = False) -> str:
    """`graft findings FILE ...` with these settings; the file by its name only, to be run in its folder.

    Options that neither estimator has are left out, as the command would refuse them.
    """
    parts = ["graft", "findings", *_input(path, group_by), *_settings(settings, settings.estimator, settings.baseline)]
    return " ".join(parts + (["--json"] if json else []))


def probe_commands(
    settings: Settings, path: str, step: str, environment: str | None, policy: str, group_by: str | None = None
) -> tuple[str, str, str]:
    """`graft probe check`, `export` and `import` of the step GROUP/ROLLOUT/STEP; the first is empty without an environment."""
    named = [*_input(path, group_by), _flag("step", step)]
    own = [part for part in _settings(settings, settings.estimator) if not part.startswith("--baseline")]
    check = ["graft", "probe", "check", *named, _flag("env", environment or ""), _flag("policy", policy), *own]
    export = ["graft", "probe", "export", *named, *own, "-o", "probes.jsonl"]
    back = "graft probe import probes.jsonl outcomes.jsonl"
    return " ".join(check) if environment else "", " ".join(export), back


def python(settings: Settings, path: str, group_by: str | None = None, group_id: str | None = None) -> str:
    """A few lines that compute and show the same: findings, and the graph of one task."""
    words = settings.to_words()
    grouped = f", group_by={group_by!r}" if group_by is not None else ""
    made = f"gc.Settings.from_words({words!r})" if settings != LOOK else "gc.Settings()"
    lines = [
        "import graft_core as gc",
        "",
        f"batch = gc.load({_name(path)!r}{grouped})",
        f"settings = {made}",
        "found = gc.findings(batch, settings)",
        "print(found.table())",
    ]
    if group_id is not None:
        lines.append(f"gc.show(found.graph, {group_id!r}, settings)  # in a notebook; .save('graph.html') elsewhere")
    return "\n".join(lines) + "\n"


def _input(path: str, group_by: str | None) -> list[str]:
    """The file by its name and how its rollouts are grouped."""
    name = _name(path)
    grouped = [] if group_by is None else [_flag("group-by", group_by)]
    return [_shell(f"./{name}" if name.startswith("-") else name), *grouped]


def _settings(settings: Settings, *names: str) -> list[str]:
    """The settings as flags, without options that none of these estimators has."""
    has = {option.name for name in names for option in estimators()[name].options}
    given = {name for name, _ in settings.given}
    parts: list[str] = []
    for key, word in settings.to_words().items():
        if key == "rules":
            parts += [_flag("rule", spec) for spec in split_rules(word)]
        elif key not in given or key in has:
            parts.append(_flag(key, word))
    return parts


def _name(path: str) -> str:
    """A file's or folder's own name; the present folder has none."""
    return PurePath(path).name or "."


def _flag(name: str, word: str) -> str:
    """`--name word`, or `--name=word` where the word would read as a flag itself."""
    flag = f"--{name.replace('_', '-')}"
    return f"{flag}={_shell(word)}" if word.startswith("-") else f"{flag} {_shell(word)}"


def _shell(word: str) -> str:
    """One word for bash and zsh; what does not print is written as an escape, so that nothing hides in a pasted line."""
    if word.isprintable():
        return shlex.quote(word)
    escaped = "".join(_escape(char) for char in word)
    return f"$'{escaped}'"


def _escape(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    if char.isprintable():
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))

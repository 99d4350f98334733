"""Finding the members of a family (rules, estimators, readers, environments) without a list of them anywhere.

A member is one module of the family's package whose name does not begin with "_" and that defines the family's
attribute (`RULE`, `ESTIMATOR`, ...). Adding one is adding one file.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from graft_core.errors import UsageError


def members(package: ModuleType, attribute: str) -> dict[str, Any]:
    """Objects named `attribute` in the package's modules, by their `name`, sorted by `rank` (default 100) and name.

    A module may define one object or a tuple of them. Two members with one name are an error.
    """
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(package.__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        value = getattr(module, attribute, ())
        for member in value if isinstance(value, tuple) else (value,):
            if member.name in found:
                raise AssertionError(f"two members of {package.__name__} are called {member.name!r}")
            found[member.name] = member
    return dict(sorted(found.items(), key=lambda item: (getattr(item[1], "rank", 100), item[0])))


def pick(family: Mapping[str, Any], name: str, what: str) -> Any:
    """The member called `name`, or a `UsageError` that names what there is and the nearest name."""
    if name in family:
        return family[name]
    raise UsageError(f"unknown {what} {name!r}{nearest(name, family)}; known: {', '.join(family)}")


def nearest(name: str, names: Iterable[str]) -> str:
    """' (did you mean ...?)' or nothing."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""

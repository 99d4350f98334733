"""Errors that the command line and the app show as one sentence.

`InputError`: the input could not be used (exit status 1). `UsageError`: the call itself was wrong (exit status 2).
"""

from __future__ import annotations


class GraftError(ValueError):
    """Base of all errors whose message is meant for people."""


class InputError(GraftError):
    """The data could not be used: says what was wrong, what was expected, and where."""


class UsageError(GraftError):
    """An option or a name was wrong: says which, and what is allowed."""


class GroupMissingError(InputError):
    """Groups of this batch were only assumed; graph and group credit wait until a grouping is chosen."""


class NotComputableError(InputError):
    """An estimator lacks something it needs in this batch (a column, step rewards, ...)."""

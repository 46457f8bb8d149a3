"""The errors of the package: each message is one sentence that says what is wrong and what to do."""

from __future__ import annotations


class AttnscopeError(Exception):
    """An input cannot be used, or the program failed."""


class ProgramNotFound(AttnscopeError):
    """The executable is neither inside the package nor where the environment points to."""


class Disagreement(AttnscopeError, AssertionError):
    """Two computations of the same attention differ; the message is the report."""

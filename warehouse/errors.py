"""Errors that every room raises and the command turns into exit codes.

Belongs here: exception types shared across rooms. Does not: messages, handling, exit codes.
"""

from __future__ import annotations


class BadInput(ValueError):
    """Data or arguments from outside that cannot be used; the message names file, line, field or object."""


class LakeBusy(RuntimeError):
    """Another process holds the writer lock of the lake; the message names it."""

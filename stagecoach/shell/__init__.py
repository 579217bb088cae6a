"""The interactive shell: statements and commands over one session."""

from __future__ import annotations

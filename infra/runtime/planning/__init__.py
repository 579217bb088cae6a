"""From a stage to its tasks: what is read, in how many parts, and under which fingerprint."""

from __future__ import annotations

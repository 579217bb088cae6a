"""Reads table files: which rows of which file, and the bytes as checked record batches.

Worker code.
"""

from __future__ import annotations

"""Table formats: what a table is on storage, one folder for each, behind one protocol."""

from __future__ import annotations

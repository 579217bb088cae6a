"""Deduplicated tables on storage: appended chunks, a manifest for each version, compaction."""

from __future__ import annotations

"""Iceberg tables: of a catalog that pyiceberg knows, or of a metadata file."""

from __future__ import annotations

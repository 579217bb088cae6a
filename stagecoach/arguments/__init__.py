"""Arguments that several commands share: query files, catalogs, parameters, settings."""

from __future__ import annotations

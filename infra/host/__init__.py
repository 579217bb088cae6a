"""Processes, locks and files of the machine that a driver or a worker runs on."""

from __future__ import annotations

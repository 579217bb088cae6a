"""Processes beside `stagecoach ui`: the host that runs are forked from, and two web servers."""

from __future__ import annotations

"""Runs one stage: claims it, executes its tasks, commits its output and recovers lost inputs."""

from __future__ import annotations

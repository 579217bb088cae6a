"""Runs a planned query over rows in memory, in this process: no storage, no shuffle, no cluster."""

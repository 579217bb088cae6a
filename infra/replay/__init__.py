"""Runs stages of an earlier run again over exactly what they read then; nothing is written."""

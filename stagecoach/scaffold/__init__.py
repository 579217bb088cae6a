"""Starts a project: its files, from templates that are packaged, and entries of its catalog."""

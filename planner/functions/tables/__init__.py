"""The registry's rows, one module a group of functions."""

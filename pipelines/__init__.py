"""The example project: queries over TPC-H tables, and the code location that serves them."""

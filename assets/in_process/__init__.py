"""One query run in this process, without a code location: what `Session.query` uses."""

"""One rewrite of chunk plans per file: `def rule(plan, context) -> plan`."""

"""Plans as Dagster definitions: specs, assets, checks, jobs, and the code location of them all."""

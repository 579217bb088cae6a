"""`python -m benchmarks.cluster_faults`: see the package."""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from pathlib import Path

import click

from benchmarks.cluster_faults.campaign import bad_endings, is_met, run_campaign, table
from benchmarks.cluster_faults.kinds import kinds_here
from benchmarks.cluster_faults.testbed import Testbed


@click.command(context_settings={"show_default": True})
@click.option("--faults", default=200, help="How many to meet, those in the log included.")
@click.option("--seed", default=1, help="Of the dice.")
@click.option(
    "--log",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("build/cluster-faults.jsonl"),
    help="Gets a line for each fault; a campaign goes on from it.",
)
@click.option("--kind", multiple=True, help="Only kinds whose names contain this.")
@click.option("--scale-factor", default=0.05, help="Of the TPC-H tables.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to keep everything.")
def main(
    faults: int,
    seed: int,
    log: Path,
    kind: tuple[str, ...],
    scale_factor: float,
    folder: Path | None,
) -> None:
    """Let faults happen to runs on a cluster; end with 1 if one ended as none may."""
    logging.basicConfig(level=logging.CRITICAL)
    log.parent.mkdir(parents=True, exist_ok=True)
    kinds, left_out = kinds_here(kind)
    place = folder or Path(tempfile.mkdtemp(prefix="stagecoach-cluster-faults-"))
    started = time.monotonic()
    click.echo(f"seed {seed}, folder {place}, log {log}")
    try:
        with Testbed(place.resolve(), scale_factor) as bed:
            entries = run_campaign(
                bed, log, faults=faults, seed=seed, kinds=kinds, say=lambda t: click.echo(t)
            )
    finally:
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)
    click.echo("\n".join([table(entries), *left_out]))
    bad, met = bad_endings(entries), sum(map(is_met, entries))
    click.echo(f"{met} faults, {bad} ended as none may; {time.monotonic() - started:.0f} s")
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()

"""What Spark is told when Stagecoach starts it."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark import classic_session

MODE, FILE = "spark.scheduler.mode", "spark.scheduler.allocation.file"


def test_stages_share_a_cluster_fairly_and_one_machine_in_turn() -> None:
    cluster = classic_session.configuration(EngineSettings(master="spark://host:7077"))
    assert cluster[MODE] == "FAIR"
    assert cluster[FILE] == classic_session.FAIR_POOLS.as_uri()
    pools = ET.parse(classic_session.FAIR_POOLS).getroot().findall("pool")
    found = {pool.get("name"): pool.findtext("schedulingMode") for pool in pools}
    assert found == {"default": "FAIR"}
    assert not {MODE, FILE} & set(classic_session.configuration(EngineSettings(master="local[4]")))

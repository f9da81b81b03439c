"""A finished run with a fake machine, as ``cuco optimize`` leaves it behind."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

_FAKES = str(Path(__file__).parent.parent / "search")
if _FAKES not in sys.path:
    sys.path.insert(0, _FAKES)


def _timeline(us: float, overlapped: bool) -> dict[str, object]:
    lanes = []
    for rank in range(2):
        gemm = [{"start": 1.0, "end": us * 0.6, "label": "gemm_kernel"}]
        start = us * 0.1 if overlapped else us * 0.62
        pieces = [
            {"start": start + i, "end": start + i + 0.9, "label": "to peer"} for i in range(int(us * 0.3))
        ]
        lanes += [
            {"rank": rank, "kind": "stream", "name": "stream 0", "intervals": gemm},
            {"rank": rank, "kind": "egress", "name": "out", "intervals": pieces},
            {"rank": rank, "kind": "ingress", "name": "in", "intervals": pieces},
            {
                "rank": rank,
                "kind": "host",
                "name": "",
                "intervals": [{"start": 0.0, "end": us, "label": "launch"}],
            },
        ]
    return {"lanes": lanes, "occupancy": []}


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    os.environ["PYTHONPATH"] = os.pathsep.join([_FAKES, os.environ.get("PYTHONPATH", "")])
    from search_fakes import make_search, run_all

    from cuco.config import Config
    from cuco.search.settings import Budget, SearchSettings

    folder = tmp_path_factory.mktemp("runs") / "fake-run"
    settings = SearchSettings(lanes=2, budget=Budget(evaluations=14))
    search = make_search(folder, settings)
    config = Config(
        name="fake", workload="workloads/fake", testbed="emulator", ranks=4, lsa_team=4, backend="auto",
        size="full", machine="h200-nvlink-8", effort="standard", search=settings,
    )  # fmt: skip
    search.ledger.set_meta("config", {"run": config.model_dump(mode="json"), "improve": 0.03})
    ended = run_all(search)
    champion = search.champion()
    assert champion is not None
    (host,) = [one for one in search.ledger.candidates() if one.is_host]
    search.confirm(host)
    search.ledger.set_meta("outcome", {"ended": ended})
    for candidate, overlapped in ((champion, True), (host, False)):
        path = folder / "candidates" / candidate.id / "timeline.json"
        path.write_text(json.dumps(_timeline(candidate.us or 0, overlapped)))
    search.close()
    search.ledger.connection.close()
    return folder

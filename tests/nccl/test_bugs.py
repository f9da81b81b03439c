"""Planted bugs are caught, each by values or by a finding that names it; the right program passes."""

from __future__ import annotations

import harness
import pytest

SEEDS = range(5)

# bug -> words of the finding; empty: wrong values are the evidence
VALUES = {
    1: "no wait",
    2: "source reused",
    3: "flush is no arrival",
    4: "weak signal",
    5: "other context",
    6: "no barrier",
}
FINDINGS = {
    7: ("deadlock", ["signal 0 of context 0", "bugs.cu"]),
    8: ("out-of-bounds", ["put of rank", "context 0", "destination [4096, 6144)", "outside"]),
    9: ("out-of-bounds", ["signal 7 does not exist"]),
    10: ("out-of-bounds", ["flat window space"]),
    11: ("out-of-bounds", ["GIN context beyond the 4"]),
    12: ("unregistered", ["deregistered"]),
    13: ("deadlock", ["ncclAllGather", "ncclAllReduce", "disagree"]),
    14: ("deadlock", ["ncclAllReduce", "rank 1, which has not called it"]),
    15: ("deadlock", ["ncclSend", "which has not called it"]),
    16: ("deadlock", ["count 4", "count 5"]),
    17: ("deadlock", ["ncclSend"]),
    18: ("out-of-bounds", ["ncclAllGather", "recvbuff"]),
    19: ("deadlock", ["ncclCommWindowRegister", "ncclDevCommCreate"]),
    20: ("out-of-bounds", ["distances of 2 only"]),
}


@pytest.mark.parametrize("delivery", ["lazy", "random"])
@pytest.mark.parametrize("lsa_team", [4, 2])
def test_the_right_program_passes(delivery: str, lsa_team: int) -> None:
    for seed in SEEDS:
        ran = harness.run(harness.build("bugs", BUG=0), 4, lsa_team=lsa_team, seed=seed, delivery=delivery)
        assert ran.passed, ran.output


@pytest.mark.slow
@pytest.mark.parametrize("bug", sorted(VALUES))
def test_wrong_values_on_every_seed(bug: int) -> None:
    built = harness.build("bugs", BUG=bug)
    for delivery in ("lazy", "random"):
        for seed in SEEDS:
            ran = harness.run(built, 4, lsa_team=2, seed=seed, delivery=delivery)
            assert not ran.passed and "WRONG VALUES" in ran.output, (
                f"{VALUES[bug]}: {delivery} {seed}: {ran.output}"
            )


@pytest.mark.slow
@pytest.mark.parametrize("bug", sorted(FINDINGS))
def test_a_finding_names_the_bug(bug: int) -> None:
    kind, words = FINDINGS[bug]
    ran = harness.run(harness.build("bugs", BUG=bug), 4, lsa_team=2)
    finding = ran.finding()
    assert finding["kind"] == kind
    text = " ".join([finding["message"], *finding.get("details", [])])
    for word in words:
        assert word in text, f"{word!r} not in {text!r}"


@pytest.mark.slow
def test_a_kernel_beside_a_message_reads_old_data() -> None:
    built = harness.build("bugs", BUG=21)
    caught = [not harness.run(built, 4, seed=seed, delivery="lazy").passed for seed in SEEDS]
    assert all(caught)

"""``--link``: another network between domains, everything else as it was."""

from __future__ import annotations

import pytest

from cuco.errors import UsageError
from cuco.testbed.vtime import load_machine
from cuco.testbed.vtime.link import with_link

MACHINE = load_machine("h100-ib400")


def test_nothing_asked_nothing_changed() -> None:
    assert with_link(MACHINE, None) is MACHINE


def test_a_rate_scales_the_nic_and_what_nccl_gets_from_it() -> None:
    slow = with_link(MACHINE, "100g")
    assert slow.nic.peak_gbs == 12.5
    assert slow.nic.gbs / slow.nic.peak_gbs == pytest.approx(MACHINE.nic.gbs / MACHINE.nic.peak_gbs)
    assert slow.nic.latency_us == MACHINE.nic.latency_us and slow.nvlink == MACHINE.nvlink
    for name in ("nic", "p2p_nic"):
        for before, after in zip(getattr(MACHINE.nccl, name), getattr(slow.nccl, name), strict=True):
            assert after.gbs == pytest.approx(before.gbs / 4)
    assert slow.nccl.nvlink == MACHINE.nccl.nvlink and slow.name == "h100-ib400 with 100g"


def test_a_latency_moves_what_each_step_costs() -> None:
    far = with_link(MACHINE, "400g,10us")
    assert far.nic.latency_us == 10 and far.nic.gbs == pytest.approx(MACHINE.nic.gbs)
    for before, after in zip(MACHINE.nccl.nic, far.nccl.nic, strict=True):
        assert after.step_us == pytest.approx(before.step_us + 10 - MACHINE.nic.latency_us)


def test_a_machine_lends_its_nic() -> None:
    lent, other = with_link(MACHINE, "h100-100g"), load_machine("h100-100g")
    assert lent.nic == other.nic and lent.nccl.nic == other.nccl.nic and lent.gpu == MACHINE.gpu


@pytest.mark.parametrize("link", ["fast", "0g", "100g,0us", "-5g", "100"])
def test_what_is_not_a_link_is_refused(link: str) -> None:
    with pytest.raises(UsageError, match="link") as caught:
        with_link(MACHINE, link)
    assert "100g" in str(caught.value)

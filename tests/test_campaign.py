"""A small campaign: certificates stand their own check, and no integration contradicts them."""

from __future__ import annotations

import pytest

from tests.benchmarks import campaign
from tests.oracles.families import FAMILIES


@pytest.mark.slow
@pytest.mark.parametrize("family", range(len(FAMILIES)))
def test_certificates_of_mixed_families_stand(family):
    for block in (0, 1):  # about all starts, and about one
        outcome = campaign.examine(family + block * len(FAMILIES))
        assert not outcome.trouble, f"seed {outcome.seed}: {outcome.trouble}"


def test_the_campaign_reports_what_goes_wrong(monkeypatch):
    def broken(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(campaign.gt, "certify", broken)
    assert campaign.examine(3).trouble == "ValueError: a bug"


def test_every_family_is_drawn_with_and_without_a_start():
    seen = {(campaign.instance(s)[0], campaign.instance(s)[2] is None) for s in range(36)}
    assert seen == {(name, missing) for name in FAMILIES for missing in (True, False)}

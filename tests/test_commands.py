"""`palate simulator profile`: written from the training part of a history, from nothing else."""

from __future__ import annotations

import json

import pytest

from palate.commands import write_user_profile
from palate.errors import InputError
from palate.simulators import read_profile
from worlds import write_history, write_study

SESSIONS = 10


@pytest.fixture
def study(tmp_path):
    """Ten sessions on two other cards and two on a panel card; the script writes the profile."""
    folder = write_study(tmp_path, users=("u1",), cards=("k1",), candidates=("A",))
    cards = [*(("x", "y") * (SESSIONS // 2)), "k1", "k1"]
    write_history(folder, cards)
    entry = {"role": "simulator", "cell": "profile/u1", "turn": 0, "text": "You write short."}
    (folder / "replies.json").write_text(json.dumps([entry]), "utf-8")
    return folder


def test_a_profile_is_written_from_the_training_sessions_alone(study):
    write_user_profile(study, user="u1", model=None, force=False)
    split = json.loads((study / "splits" / "u1.json").read_text("utf-8"))
    profile = read_profile(study / "simulators" / "u1" / "profile.json")
    assert profile.provenance.training_sessions == split["training"]
    assert (len(split["training"]), profile.facts.messages) == (8, 8)
    assert {"s10", "s11"} <= set(split["held_out"])  # on the panel's card
    assert split["panel_cards"] == ["k1"]


def test_a_profile_that_is_there_is_kept_unless_it_is_to_be_replaced(study):
    write_user_profile(study, user="u1", model=None, force=False)
    with pytest.raises(InputError, match="is there already; --force writes it anew"):
        write_user_profile(study, user="u1", model=None, force=False)
    write_user_profile(study, user="u1", model=None, force=True)


def test_a_user_that_the_study_does_not_have_is_named_with_those_it_has(study):
    with pytest.raises(InputError, match="has no user 'u9'; its users are u1"):
        write_user_profile(study, user="u9", model=None, force=False)

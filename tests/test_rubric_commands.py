"""Rubrics at the command line: frozen from training sessions alone, and checked against them."""

import json

import pytest

from palate.errors import InputError, RubricError
from palate.rubric_commands import freeze_rubric, verify_rubrics
from palate.rubrics.freeze import as_json, freeze, read
from worlds import personal_rubric, write_history, write_study


@pytest.fixture
def study(tmp_path):
    """One user with ten sessions on other cards than the panel's."""
    folder = write_study(tmp_path, users=("u1",), cards=("k1",), candidates=("A",))
    (folder / "replies.json").write_text("[]", "utf-8")
    write_history(folder, ["x"] * 10)
    (folder / "rubrics" / "u1.json").unlink()
    return folder


def draft(folder, cited):
    """A draft file whose one reward cites `cited`."""
    content = personal_rubric("u1")
    content["rewards"][0]["evidence"] = cited
    del content["sha256"], content["provenance"]
    path = folder / "draft.json"
    path.write_text(json.dumps(content), "utf-8")
    return path


def parts(folder):
    record = json.loads((folder / "splits" / "u1.json").read_text("utf-8"))
    return record["training"], sorted(record["held_out"])


def test_a_draft_is_frozen_with_the_training_sessions_of_the_split(study, capsys):
    freeze_rubric(study, user="u1", draft=draft(study, []), force=False)
    rubric = read(study / "rubrics" / "u1.json")
    training, held_out = parts(study)
    assert (len(training), len(held_out)) == (8, 2)
    assert rubric.provenance.training_sessions == training
    assert rubric.provenance.author == "hand"
    verify_rubrics(study)
    assert "8 training sessions" in capsys.readouterr().out


def test_a_draft_may_not_cite_a_held_out_session(study):
    freeze_rubric(study, user="u1", draft=draft(study, []), force=False)
    _, held_out = parts(study)
    before = (study / "rubrics" / "u1.json").read_bytes()
    with pytest.raises(RubricError, match=held_out[0]):
        freeze_rubric(study, user="u1", draft=draft(study, [f"{held_out[0]}#0"]), force=True)
    assert (study / "rubrics" / "u1.json").read_bytes() == before


def test_a_rubric_that_is_there_is_not_replaced_unasked(study):
    freeze_rubric(study, user="u1", draft=draft(study, []), force=False)
    with pytest.raises(InputError, match="is there already; --force replaces it"):
        freeze_rubric(study, user="u1", draft=draft(study, []), force=False)


def test_a_rubric_made_from_a_held_out_session_does_not_verify(study):
    freeze_rubric(study, user="u1", draft=draft(study, []), force=False)
    path = study / "rubrics" / "u1.json"
    content = json.loads(path.read_text("utf-8"))
    _, held_out = parts(study)
    split = json.loads((study / "splits" / "u1.json").read_text("utf-8"))
    content["provenance"]["training_sessions"][held_out[0]] = split["held_out"][held_out[0]]
    path.write_text(as_json(freeze(content)), "utf-8")
    with pytest.raises(RubricError, match="no training session of the recorded split"):
        verify_rubrics(study)


def test_an_unknown_user_is_refused_with_those_there_are(study):
    with pytest.raises(InputError, match="has no user 'u2'; its users are u1"):
        freeze_rubric(study, user="u2", draft=draft(study, []), force=False)

"""No folder of the machine reaches a report: what lies in the study reads from there on."""

import pytest

from palate.config import read_study
from palate.validation_places import shortened
from worlds import write_study


@pytest.fixture
def short(tmp_path, monkeypatch):
    home = tmp_path / "home" / "ada"
    study = write_study(home / "my study", users=("u1",), cards=("k1",), candidates=("A",))
    monkeypatch.setattr("pathlib.Path.home", lambda: home)
    texts = shortened(read_study(study))
    return lambda text: texts(text.format(study=study, home=home))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{study}/simulators/u1/profile.json is gone", "simulators/u1/profile.json is gone"),
        (
            "`palate simulator profile '{study}' --user u1`",
            "`palate simulator profile 'my study' --user u1`",
        ),
        ("see {study}.", "see my study."),
        ("{study} and {study}/study.toml", "my study and study.toml"),
        ("another's {study}-2/x", "another's ~/my study-2/x"),
        ("the base model {home}/models/base", "the base model ~/models/base"),
        ("openai:{home}/m@http://127.0.0.1:8000/v1", "openai:~/m@http://127.0.0.1:8000/v1"),
        ("{home}2/m", "{home}2/m"),
        ("file://{study}/x", "file://x"),
        ("/opt/models/base", "/opt/models/base"),
        ("文件在{study}/x里", "文件在x里"),
    ],
)
def test_folders_of_the_machine_are_left_out(short, tmp_path, text, shown):
    assert short(text) == shown.format(home=tmp_path / "home" / "ada")


def test_a_study_behind_a_link_is_known_by_both_its_places(tmp_path):
    real = write_study(tmp_path / "real", users=("u1",), cards=("k1",), candidates=("A",))
    link = tmp_path / "link"
    link.symlink_to(real)
    texts = shortened(read_study(link))
    assert texts(f"{link}/a, {real}/b") == "a, b"


def test_a_home_that_nobody_has_is_no_error(tmp_path, monkeypatch):
    def nobody():
        raise RuntimeError("no home")

    study = write_study(tmp_path / "study", users=("u1",), cards=("k1",), candidates=("A",))
    monkeypatch.setattr("pathlib.Path.home", nobody)
    assert shortened(read_study(study))(f"{study}/x") == "x"

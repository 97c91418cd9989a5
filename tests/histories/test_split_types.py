"""Reading a held-out label where one may only learn is a type error: mypy is asked."""

import textwrap

import pytest

from palate.histories import split
from palate.simulators import measured
from palate.types import TrainingSession

from .chats import rated

# What a careless writer of an induction or a trainer might try; each line must be refused.
ATTEMPTS = """
from palate.histories import HeldOutLabels, HeldOutSession, Split
from palate.simulators import measured
from palate.types import Session, TrainingSession

def learn(training: TrainingSession) -> None: ...

def attempts(split: Split, session: Session, held_out: HeldOutSession) -> None:
    measured(split.training, "en")
    learn(split.training[0])
    measured(split.held_out, "en")  # refused
    measured([session], "en")  # refused
    learn(held_out)  # refused
    learn(session)  # refused
    learn(held_out.session)  # refused
    split.labels[("s", 2)]  # refused
    list(split.labels)  # refused
    split.training[0].labels  # refused
    split.held_out[0].labels  # refused
    split.held_out += split.training  # refused
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """The numbers of the lines that mypy, as strict as on the product, finds an error on."""
    api = pytest.importorskip("mypy.api")
    folder = tmp_path_factory.mktemp("types")
    file = folder / "attempts.py"
    file.write_text(textwrap.dedent(ATTEMPTS), "utf-8")
    config = folder / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\nplugins = pydantic.mypy\n", "utf-8")
    told, faults, _ = api.run(
        ["--config-file", str(config), "--cache-dir", str(folder / "cache"), str(file)]
    )
    assert faults == ""
    lines = [line for line in told.splitlines() if ": error: " in line]
    assert all("attempts.py" in line for line in lines), told
    return {int(line.split(":")[1]) for line in lines}


@pytest.mark.slow
def test_learning_from_a_held_out_session_or_its_labels_is_a_type_error(refused):
    lines = enumerate(ATTEMPTS.splitlines(), 1)
    assert refused == {number for number, line in lines if line.endswith("# refused")}


def test_what_is_handed_to_learning_holds_no_label_of_a_held_out_session():
    sessions = [rated(f"s{n}", 1, 5) for n in range(10)]
    made = split(sessions, seed=7)
    learned = {item.session.session_id for item in made.training}
    assert all(type(item) is TrainingSession for item in made.training)
    assert learned.isdisjoint(item.session.session_id for item in made.held_out)
    for item in made.held_out:
        assert [turn.satisfaction for turn in item.session.turns] == [None] * 5
        assert "satisfaction=1" not in repr(item)
        assert "satisfaction=5" not in repr(item)
    assert measured(made.training, "en").sessions == 8

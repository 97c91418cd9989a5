"""`palate history check`, `stats` and `split` at the command line."""

import json
import time

import pytest
from click.testing import CliRunner

from palate.cli import palate
from palate.errors import InputError
from palate.history_review_commands import check_history, show_split, show_stats
from worlds import write_history, write_study


def line(number, ratings, *, card="k9", user="u1", ended_by="quit"):
    """A session as a line of a history; no text comes twice."""
    turns = [{"speaker": "character", "text": "The gate is shut."}]
    for n, rating in enumerate(ratings):
        turns.append({"speaker": "user", "text": f"I knock {number} and {n}"})
        turns.append(
            {"speaker": "character", "text": f"Nobody, {number}, {n}.", "satisfaction": rating}
        )
    session = {
        "session_id": f"{user}-{number}",
        "user_id": user,
        "card_id": card,
        "language": "en",
        "ended_by": ended_by,
        "turns": turns,
    }
    return json.dumps(session) + "\n"


@pytest.fixture
def file(tmp_path):
    """Two users in one file: u1 rates 1..5, u2 always 4."""
    path = tmp_path / "chats.jsonl"
    lines = [line(n, [1, 2, 3, 4, 5, 5, 4, 3, 2, 1]) for n in range(10)]
    lines += [line(n, [4] * 10, user="u2") for n in range(10)]
    path.write_text("".join(lines), "utf-8")
    return path


@pytest.fixture
def study(tmp_path):
    """One user with ten sessions on a card that the study has not, two on a panel card."""
    folder = write_study(tmp_path / "study", users=("u1",), cards=("k1",), candidates=("A",))
    (folder / "replies.json").write_text("[]", "utf-8")
    write_history(folder, [])
    lines = [line(n, [1, 5], ended_by="limit" if n % 5 == 0 else "quit") for n in range(10)]
    lines += [line(n, [1, 5], card="k1") for n in (10, 11)]
    (folder / "u1.jsonl").write_text("".join(lines), "utf-8")
    return folder


def test_check_says_what_is_wrong_and_exits_with_1_where_no_rubric_can_be_made(file, capsys):
    assert check_history(file, as_json=False) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"u1: 10 sessions, 100 rated replies: can be used ({file})"
    assert said[1] == "  nothing to remark"
    assert said[2] == f"u2: 10 sessions, 100 rated replies: cannot be used ({file})"
    assert said[3].startswith("  stop: All 100 ratings are 4: they teach nothing")


def test_check_prints_json_with_every_place(study, capsys):
    assert check_history(study, as_json=True) == 0
    [told] = json.loads(capsys.readouterr().out)
    kinds = {one["kind"]: one for one in told["findings"]}
    assert (told["user_id"], told["ok"], told["sessions"], told["rated"]) == ("u1", True, 12, 24)
    assert kinds["panel-card"]["places"] == ["u1-10", "u1-11"]
    assert len(kinds["unknown-card"]["places"]) == 10


def test_a_card_of_the_library_or_of_the_cards_folder_is_known(study, capsys):
    (study / "cards" / "k9.png").write_bytes(b"")
    text = (study / "u1.jsonl").read_text("utf-8")
    (study / "u1.jsonl").write_text(text.replace("k9", "gu-qiuping-zh", 5), "utf-8")
    check_history(study, as_json=False)
    assert "no card in the study" not in capsys.readouterr().out


def test_what_cannot_be_read_exits_with_2(tmp_path, study):
    with pytest.raises(InputError, match="does not exist; check the path of the history"):
        check_history(tmp_path / "none.jsonl", as_json=False)
    with pytest.raises(InputError, match="cannot be read"):
        check_history(tmp_path / ("n" * 300), as_json=False)
    (study / "u1.jsonl").write_text("{", "utf-8")
    with pytest.raises(InputError, match=r"u1\.jsonl line 1"):
        check_history(study, as_json=False)


def test_a_study_without_a_history_is_refused(tmp_path):
    folder = write_study(tmp_path, users=("u1",), cards=("k1",), candidates=("A",))
    (folder / "replies.json").write_text("[]", "utf-8")
    with pytest.raises(InputError, match="no user has a history; add history = "):
        check_history(folder, as_json=False)


def test_stats_print_a_table_and_the_same_numbers_as_json(file, capsys):
    show_stats(file, as_json=False, out=None)
    table = {row[:34].strip(): row[34:].split() for row in capsys.readouterr().out.splitlines()}
    assert table["sessions"] == ["10", "10"]
    assert table["ratings 1 2 3 4 5"] == ["20"] * 5 + ["0", "0", "0", "100", "0"]
    assert table["entropy of 2.32 bits"] == ["2.32", "0.00"]
    show_stats(file, as_json=True, out=None)
    first, second = json.loads(capsys.readouterr().out)
    assert first["ratings"]["counts"] == [20, 20, 20, 20, 20]
    assert (second["pairs"], second["rated_pairs"]) == (0, 450)


def test_stats_draw_a_page_and_json_stays_alone_on_standard_output(study, tmp_path, capsys):
    out = tmp_path / "deep" / "page.html"
    show_stats(study, as_json=True, out=out)
    printed = capsys.readouterr()
    assert json.loads(printed.out)[0]["sessions"] == 12
    assert printed.err == f"Wrote {out}\n"
    assert "<title>tiny · palate histories</title>" in out.read_text("utf-8")


def test_the_page_never_takes_the_place_of_a_history(study, file):
    for place, out in ((file, file), (study, study / "u1.jsonl")):
        before = out.read_bytes()
        with pytest.raises(InputError, match="which the page would overwrite"):
            show_stats(place, as_json=False, out=out)
        assert out.read_bytes() == before


def test_split_records_and_tells_what_trains_and_what_is_held_out(study, capsys):
    show_split(study, user="u1", as_json=True)
    told = json.loads(capsys.readouterr().out)
    parts = [(one["part"], one["why"]) for one in told["sessions"]]
    assert parts.count(("training", "not drawn")) == 8
    assert parts.count(("held_out", "drawn")) == 2
    assert parts[10:] == [("held_out", "panel card")] * 2
    record = json.loads((study / "splits" / "u1.json").read_text("utf-8"))
    assert sorted(record["training"]) == sorted(
        one["session_id"] for one in told["sessions"] if one["part"] == "training"
    )


def test_split_shows_a_table_of_cards_and_endings(study, capsys):
    show_split(study, user="u1", as_json=False)
    said = [row.split() for row in capsys.readouterr().out.splitlines()]
    assert said[0][:2] == ["u1:", "8"]
    assert ["k1", "quit", "0", "2"] in said
    strata = {tuple(row[:2]): row[2:] for row in said if row[:1] == ["k9"]}
    assert sum(int(held_out) for _, held_out in strata.values()) == 2
    assert sum(int(training) for training, _ in strata.values()) == 8


def test_a_recorded_split_is_shown_as_it_is_when_the_panel_has_grown(study, capsys):
    """The record was made before k9 joined the panel: it stays, and the flattery is told."""
    show_split(study, user="u1", as_json=True)
    before = json.loads(capsys.readouterr().out)
    k1 = (study / "cards" / "k1.json").read_text("utf-8")
    (study / "cards" / "k9.json").write_text(k1, "utf-8")
    show_split(study, user="u1", as_json=True)
    after = json.loads(capsys.readouterr().out)
    assert after["sessions"] == before["sessions"]
    assert before["remarks"] == []
    assert after["remarks"][0].startswith("Sessions on panel cards are learned from (u1-")


def test_a_history_that_changed_since_is_refused(study):
    show_split(study, user="u1", as_json=False)
    with (study / "u1.jsonl").open("a", encoding="utf-8") as lines:
        lines.write(line(99, [3]))
    with pytest.raises(InputError, match="session 'u1-99' was added since"):
        show_split(study, user="u1", as_json=False)


def test_too_few_sessions_are_refused_and_nothing_is_recorded(study):
    (study / "u1.jsonl").write_text(line(0, [1]) + line(1, [5]), "utf-8")
    with pytest.raises(InputError, match="user u1 has too few sessions to split: 2"):
        show_split(study, user="u1", as_json=False)
    assert not (study / "splits").exists()


def test_an_unknown_user_is_refused(study):
    with pytest.raises(InputError, match="has no user 'u7'; its users are u1"):
        show_split(study, user="u7", as_json=False)


def test_text_of_a_chat_cannot_act_on_the_terminal(tmp_path, capsys):
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(line(n, [1], user="\x1b[31mred\x07") for n in range(2)), "utf-8")
    check_history(path, as_json=False)
    show_stats(path, as_json=False, out=None)
    printed = capsys.readouterr().out
    assert "red" in printed
    assert "\x07" not in printed
    assert "\x1b[31m" not in printed


def test_the_commands_are_there_and_pass_on_the_exit_code(file, study):
    runner = CliRunner()
    assert runner.invoke(palate, ["history", "check", str(file)]).exit_code == 1
    assert runner.invoke(palate, ["history", "check", str(study)]).exit_code == 0
    assert runner.invoke(palate, ["history", "stats", str(file), "--json"]).exit_code == 0
    split = runner.invoke(palate, ["history", "split", str(study), "--user", "u1"])
    assert (split.exit_code, "not drawn" in split.output) == (0, True)


def test_histories_are_looked_at_without_any_models_key(study, monkeypatch):
    """No model is called: a newcomer checks chats before there is a key to anything."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    toml = study / "study.toml"
    keyed = toml.read_text("utf-8").replace("scripted:replies.json", "openai:some-model")
    assert "openai:some-model" in keyed
    toml.write_text(keyed, "utf-8")
    for command in (["check"], ["stats", "--json"], ["split", "--user", "u1"]):
        name, *options = command
        done = CliRunner().invoke(palate, ["history", name, str(study), *options])
        assert (done.exit_code, done.exception) == (0, None), (command, done.exception)


def test_16000_rated_turns_are_checked_in_under_5_seconds(tmp_path, capsys):
    path = tmp_path / "chats.jsonl"
    ratings = [1, 2, 3, 4, 5, 4, 3, 2] * 2
    path.write_text("".join(line(n, ratings) for n in range(1000)), "utf-8")
    began = time.perf_counter()
    assert check_history(path, as_json=False) == 0
    assert time.perf_counter() - began < 5
    assert "1,000 sessions, 16,000 rated replies" in capsys.readouterr().out

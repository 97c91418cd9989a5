"""SCORES.csv is read strictly: what is wrong, in which line, in one sentence."""

import pytest

from palate.aggregate import read_scores
from palate.errors import InputError
from palate.types import ScoreRow

HEADER = "user,card,candidate,repetition,track,reply,score\n"


@pytest.fixture
def read(tmp_path):
    def read(content):
        path = tmp_path / "scores.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_scores(path)

    return read


def test_rows_are_read_as_they_stand(read):
    text = HEADER + "u1,k1,A,1,personal,0,4.5\nu1,k1,A,1,session,,3\nu1,k1,A,2,generic,1,\n"
    assert read(text) == [
        ScoreRow("u1", "k1", "A", 1, "personal", 0, 4.5),
        ScoreRow("u1", "k1", "A", 1, "session", None, 3.0),
        ScoreRow("u1", "k1", "A", 2, "generic", 1, None),
    ]


def test_a_planned_cell_without_a_reply_has_neither_reply_nor_score(read):
    assert read(HEADER + "u1,k1,A,1,personal,,\n")[0].reply is None


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + HEADER.encode() + b"u1,k1,A,1,personal,0,4\n",
        (HEADER + "u1,k1,A,1,personal,0,4\n").replace("\n", "\r\n").encode(),
        (HEADER + "u1,k1,A,1,personal,0,4\n").replace("\n", "\r").encode(),
        (HEADER + "\n u1 , k1 ,A,1,personal,0, 4\n,,,,,,\n").encode(),
        b"score,reply,track,repetition,candidate,card,user,judge\n4,0,personal,1,A,k1,u1,j\n",
    ],
    ids=["byte order mark", "CRLF", "CR", "blanks", "other order and a further column"],
)
def test_harmless_forms_are_accepted(read, content):
    assert read(content) == [ScoreRow("u1", "k1", "A", 1, "personal", 0, 4.0)]


def test_names_are_kept_as_they_are(read):
    row = read(HEADER + '"用户 1","a, ""b""",openai/gpt-5,1,personal,0,4\n')[0]
    assert row[:3] == ("用户 1", 'a, "b"', "openai/gpt-5")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "u1,k1,A,1,private,0,4",
            "has the track 'private': give one of personal, generic, session",
        ),
        ("u1,k1,A,1,Personal,0,4", "has the track 'Personal'"),
        ("u1,k1,A,1,personal,0,5.01", r"has the score '5.01': give a number in 1..5, or nothing"),
        ("u1,k1,A,1,personal,0,0", "has the score '0'"),
        ("u1,k1,A,1,personal,0,-1", "has the score '-1'"),
        ("u1,k1,A,1,personal,0,nan", "has the score 'nan'"),
        ("u1,k1,A,1,personal,0,inf", "has the score 'inf'"),
        ("u1,k1,A,1,personal,0,1e999", "has the score '1e999'"),
        ("u1,k1,A,1,personal,0,four", "has the score 'four'"),
        ("u1,k1,A,1,personal,0,1_0", "has the score '1_0'"),
        ("u1,k1,A,1,personal,0,４", "has the score '４'"),
        ("u1,k1,A,0,personal,0,4", "has the repetition '0': give a whole number from 1"),
        ("u1,k1,A,1.0,personal,0,4", "has the repetition '1.0'"),
        ("u1,k1,A,,personal,0,4", "has the repetition ''"),
        ("u1,k1,A,1,personal,-1,4", "has the reply '-1': give a whole number from 0"),
        ("u1,k1,A,1,personal,1.5,4", "has the reply '1.5'"),
        ("u1,k1,A,1,personal,,4", "scores no reply on the personal track"),
        ("u1,k1,A,1,session,0,4", "has the reply '0' on the session track: leave it empty there"),
        (",k1,A,1,personal,0,4", "has no user: fill it in"),
        ("u1,,A,1,personal,0,4", "has no card"),
        ("u1,k1, ,1,personal,0,4", "has no candidate"),
        ("u1,k1,A,1,personal,0", "has 6 fields, not 7 like the header"),
        ("u1,k1,A,1,personal,0,4,5", "has 8 fields, not 7"),
        ('u1,k1,A,1,personal,0,"4', r"is not valid CSV \(.*\): check its quotes"),
        ("u1,k1,A\0,1,personal,0,4", "holds a NUL character"),
        ("u0,k1,A,1,personal,0,3", "repeats line 2: keep one of the two"),
        ("u0,k1,A,1,personal,,", "says otherwise than line 2 whether the trajectory has a reply"),
    ],
)
def test_a_wrong_line_is_named_with_what_to_do(read, row, message):
    good = "u0,k1,A,1,personal,0,4\n"
    with pytest.raises(InputError, match=rf"scores\.csv, line 3 {message}") as caught:
        read(HEADER + good + row)
    assert "\n" not in str(caught.value)


def test_a_row_that_differs_only_in_its_score_is_a_repetition(read):
    row = "u1,k1,A,1,session,,"
    with pytest.raises(InputError, match="line 3 repeats line 2"):
        read(HEADER + row + "4\n" + row + "\n")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("user,card,candidate,repetition,track,reply", "line 1 lacks the column score"),
        ("user;card;candidate;repetition;track;reply;score", "lacks the column user, card"),
        ("u1,k1,A,1,personal,0,4", "lacks the column user"),
        ("user,card,candidate,repetition,track,reply,score,score", "has the column score twice"),
    ],
)
def test_a_wrong_header_is_refused(read, header, message):
    with pytest.raises(InputError, match=message):
        read(header + "\nu1,k1,A,1,personal,0,4,4\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: give the columns user,card"),
        (b"\n\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (HEADER.encode(), "has a header and no scores"),
        (HEADER.encode() + b"u\xe9,k1,A,1,personal,0,4\n", "line 2 is not UTF-8"),
        (HEADER.encode("utf-16"), "line 1 is not UTF-8"),
    ],
    ids=["nothing", "blank lines", "only a mark", "only a header", "Latin-1", "UTF-16"],
)
def test_a_file_without_readable_scores_is_refused(read, content, message):
    with pytest.raises(InputError, match=message):
        read(content)


def test_a_missing_file_or_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv cannot be read \(No such file"):
        read_scores(tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_scores(tmp_path)

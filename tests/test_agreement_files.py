"""LABELS.csv and SCORES.csv are read strictly: what is wrong, in which line, in one sentence."""

import pytest

from palate.errors import InputError
from palate.studies.agreement_files import read_condition_scores, read_labels
from palate.studies.agreement_rows import ConditionScore, LabelRow

LABELS = "user,session,reply,label\n"
SCORES = "condition,user,session,reply,score\n"


@pytest.fixture
def labels(tmp_path):
    return reader(tmp_path / "labels.csv", read_labels)


@pytest.fixture
def scores(tmp_path):
    return reader(tmp_path / "scores.csv", read_condition_scores)


def reader(path, read):
    def of(content):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read(path)

    return of


def test_labels_are_read_as_they_stand(labels):
    assert labels(LABELS + "u1,s1,0,4\nu1,s1,7,1\n") == [
        LabelRow("u1", "s1", 0, 4, 1),
        LabelRow("u1", "s1", 7, 1, 1),
    ]


def test_an_occasion_tells_the_second_rating_and_an_empty_one_is_the_first(labels):
    rows = labels("occasion,label,reply,session,user\n,4,0,s1,u1\n2,5,0,s1,u1\n")
    assert rows == [LabelRow("u1", "s1", 0, 4, 1), LabelRow("u1", "s1", 0, 5, 2)]


def test_scores_are_any_numbers_and_an_empty_one_is_missing(scores):
    text = SCORES + "generic,u1,s1,0,-3.5e2\ngeneric,u1,s1,1,\n"
    assert scores(text) == [
        ConditionScore("generic", "u1", "s1", 0, -350.0),
        ConditionScore("generic", "u1", "s1", 1, None),
    ]


def test_confidence_and_length_are_optional_columns_and_may_have_gaps(scores):
    text = (
        "condition,user,session,reply,score,length,confidence\np,u1,s1,0,3,120,0.9\np,u1,s1,1,3,,\n"
    )
    assert scores(text) == [
        ConditionScore("p", "u1", "s1", 0, 3.0, 0.9, 120.0),
        ConditionScore("p", "u1", "s1", 1, 3.0, None, None),
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + LABELS.encode() + b"u1,s1,0,4\n",
        (LABELS + "u1,s1,0,4\n").replace("\n", "\r\n").encode(),
        (LABELS + "\n u1 , s1 ,0, 4\n,,,\n").encode(),
        (LABELS + "u1,s1,0,4.0\n").encode(),
    ],
    ids=["byte order mark", "CRLF", "blanks", "a table with gaps"],
)
def test_harmless_forms_are_accepted(labels, content):
    assert labels(content) == [LabelRow("u1", "s1", 0, 4, 1)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("u1,s1,0,0", "line 2 has the label '0': give one of 1, 2, 3, 4, 5"),
        ("u1,s1,0,6", "has the label '6'"),
        ("u1,s1,0,3.5", "has the label '3.5'"),
        ("u1,s1,0,", "has the label ''"),
        ("u1,s1,0,nan", "has the label 'nan'"),
        ("u1,s1,0,inf", "has the label 'inf'"),
        ("u1,s1,0,４", "has the label '４'"),
        ("u1,s1,0,good", "has the label 'good'"),
        ("u1,s1,-1,4", "has the reply '-1': give a whole number from 0"),
        ("u1,s1,1.0,4", "has the reply '1.0'"),
        ("u1,s1,,4", "has the reply ''"),
        (",s1,0,4", "has no user: fill it in"),
        ("u1,,0,4", "has no session: fill it in"),
        ("u1,s1,0", "has 3 fields, not 4 like the header"),
        ("u1,s1,0,4,2", "has 5 fields, not 4 like the header"),
    ],
)
def test_a_wrong_label_is_named_with_its_line(labels, row, message):
    with pytest.raises(InputError, match=message):
        labels(LABELS + row + "\n")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("p,u1,s1,0,nan", "line 2 has the score 'nan': give a finite number, or nothing"),
        ("p,u1,s1,0,-inf", "has the score '-inf'"),
        ("p,u1,s1,0,1e999", "has the score '1e999'"),
        ("p,u1,s1,0,n/a", "has the score 'n/a'"),
        ("p,u1,s1,0,1_0", "has the score '1_0'"),
        ("p,u1,s1,x,1", "has the reply 'x'"),
        (",u1,s1,0,1", "has no condition: fill it in"),
        ("p,,s1,0,1", "has no user"),
        ("p,u1,,0,1", "has no session"),
    ],
)
def test_a_wrong_score_is_named_with_its_line(scores, row, message):
    with pytest.raises(InputError, match=message):
        scores(SCORES + row + "\n")


@pytest.mark.parametrize(
    ("header", "row", "message"),
    [
        ("confidence", "sure", "has the confidence 'sure'"),
        ("confidence", "NaN", "has the confidence 'NaN'"),
        ("length", "inf", "has the length 'inf'"),
        ("length", "-1", "has the length '-1': give one from 0, or nothing"),
    ],
)
def test_a_wrong_value_of_an_optional_column_is_named(scores, header, row, message):
    with pytest.raises(InputError, match=message):
        scores(f"condition,user,session,reply,score,{header}\np,u1,s1,0,1,{row}\n")


def test_a_second_row_for_the_same_thing_is_refused_with_both_lines(labels, scores):
    with pytest.raises(InputError, match="line 4 repeats line 2: keep one of the two"):
        labels(LABELS + "u1,s1,0,4\nu2,s1,0,4\nu1,s1,0,5\n")
    with pytest.raises(InputError, match="line 3 repeats line 2"):
        labels("user,session,reply,label,occasion\nu1,s1,0,4,\nu1,s1,0,4,1\n")
    with pytest.raises(InputError, match="line 3 repeats line 2"):
        scores(SCORES + "p,u1,s1,00,4\np,u1,s1,0,\n")


@pytest.mark.parametrize("row", ["u1,s1,0,4,1.5", "u1,s1,0,4,again"])
def test_an_occasion_is_a_whole_number(labels, row):
    with pytest.raises(InputError, match="has the occasion"):
        labels("user,session,reply,label,occasion\n" + row + "\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty: give the columns user,session,reply,label"),
        (LABELS, "has a header and no labels"),
        ("user,session,reply\nu1,s1,0\n", "line 1 lacks the column label"),
        ("user;session;reply;label\nu1;s1;0;4\n", "lacks the column user, session, reply, label"),
        ("user,session,reply,label,label\n", "has the column label twice"),
        ("user,session,reply,label,note\n", "line 1 has the column 'note': palate reads"),
        (b"\xff\xfeu\x00", "is not UTF-8"),
        (LABELS + 'u1,"s1,0,4\n', "is not valid CSV"),
        (LABELS + "u1,s\0,0,4\n", "holds a NUL character"),
    ],
)
def test_a_file_that_is_no_table_of_labels_is_refused(labels, content, message):
    with pytest.raises(InputError, match=message):
        labels(content)


def test_a_file_of_scores_without_scores_or_not_there_is_refused(scores, tmp_path):
    with pytest.raises(InputError, match="has a header and no scores"):
        scores(SCORES)
    with pytest.raises(InputError, match="cannot be read"):
        read_condition_scores(tmp_path / "none.csv")

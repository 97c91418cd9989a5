"""A damaged file gives a card or one sentence, whatever bytes were changed."""

import contextlib
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from card_bytes import charx, chunk, packed, png, t_ext, text, v2, v3
from palate.cards.export import export
from palate.cards.files import load
from palate.errors import InputError

GOOD = {
    "json": text(v3(first_mes="Hm.", character_book={"entries": []})),
    "png": png(
        chunk(b"zTXt", b"ccv3\0\0" + zlib.compress(packed(v3()))),
        t_ext(b"chara", packed(v2())),
        chunk(b"iTXt", b"chara\0\1\0\0\0" + zlib.compress(packed(v2()))),
    ),
    "charx": b"\xff\xd8\xff" + charx(("a.png", b"a" * 50), ("card.json", text(v3()))),
    "yaml": b"name: A\ngreeting: |-\n  Hi\n  you\ncontext: 'c'\nx: [1, {b: 2.5}]\n",
}
CHANGES = st.lists(
    st.tuples(st.integers(0, 2000), st.integers(0, 3), st.binary(max_size=6)),
    min_size=1,
    max_size=5,
)


def changed(raw, changes):
    for place, dropped, added in changes:
        at = place % (len(raw) + 1)
        raw = raw[:at] + added + raw[at + dropped :]
    return raw


def answer(path):
    """The card, or the sentence that refuses it."""
    try:
        return load(path).card
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("kind", GOOD)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None
)
@given(changes=CHANGES)
def test_changed_bytes_never_end_in_anything_but_a_sentence(tmp_path, kind, changes):
    path = tmp_path / "card"
    path.write_bytes(changed(GOOD[kind], changes))
    card = answer(path)
    if isinstance(card, str):
        assert card.startswith(str(path))
        assert "\n" not in card
        return
    for ending in (".json", ".png", ".charx", ".yaml"):
        with contextlib.suppress(InputError):
            export(path, tmp_path / f"out{ending}", overwrite=True)
            assert load(tmp_path / f"out{ending}").card.opening.strip() == card.opening.strip()


@pytest.mark.parametrize("kind", GOOD)
def test_a_file_cut_at_any_byte_gives_a_card_or_a_sentence(tmp_path, kind):
    path = tmp_path / "card"
    for length in range(0, len(GOOD[kind]), 3):
        path.write_bytes(GOOD[kind][:length])
        card = answer(path)
        assert card.startswith(str(path)) if isinstance(card, str) else card.name

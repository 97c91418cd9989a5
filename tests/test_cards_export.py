"""Writing cards: what was not understood survives, what has no place is named."""

import base64
import io
import json
import struct
import zipfile
import zlib

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from card_bytes import DATA, END, charx, chunk, chunks_of, packed, png, t_ext, text, v2, v3
from palate.cards.export import export
from palate.cards.files import load
from palate.cards.versions import NOTICE, as_v3
from palate.errors import InputError, StoreError
from palate.types import Card

EMPTY = {
    "personality": "",
    "scenario": "",
    "mes_example": "",
    "creator_notes": "",
    "system_prompt": "",
    "post_history_instructions": "",
    "creator": "",
    "character_version": "",
    "alternate_greetings": [],
    "tags": [],
    "group_only_greetings": [],
    "extensions": {},
}


def put(path, content):
    path.write_bytes(content if isinstance(content, bytes) else text(content))
    return path


def told(path):
    """The JSON object in a JSON file or in the chunks of a picture, by keyword."""
    raw = path.read_bytes()
    if not raw.startswith(b"\x89PNG"):
        return json.loads(raw)
    pairs = [data.split(b"\0", 1) for kind, data in chunks_of(raw) if kind == b"tEXt"]
    return {
        word.decode(): json.loads(base64.b64decode(value))
        for word, value in pairs
        if word in (b"chara", b"ccv3")
    }


def test_a_v2_card_is_lifted_by_the_specifications_empty_values(tmp_path):
    source = put(tmp_path / "a.json", v2(first_mes="Hm.", tags=None, odd={"kept": [1]}))
    assert export(source, tmp_path / "b.json") == ()
    assert told(tmp_path / "b.json") == {
        "spec": "chara_card_v3",
        "spec_version": "3.0",
        "data": {**EMPTY, **v2()["data"], "first_mes": "Hm.", "odd": {"kept": [1]}},
    }


def test_a_v1_card_is_lifted_and_its_unknown_fields_stay_beside_it(tmp_path):
    flat = {"name": "Ash", "description": "d", "first_mes": "Hm.", "talkativeness": "0.5"}
    export(put(tmp_path / "a.json", flat), tmp_path / "b.json")
    assert told(tmp_path / "b.json") == {
        "spec": "chara_card_v3",
        "spec_version": "3.0",
        "talkativeness": "0.5",
        "data": {**EMPTY, "name": "Ash", "description": "d", "first_mes": "Hm."},
    }


def test_text_where_a_list_belongs_is_written_as_a_list_of_one():
    lifted = as_v3(v2(tags="calm, night", alternate_greetings="Hi.", mes_example=["a", "b"]))
    assert lifted["data"]["tags"] == ["calm, night"]
    assert lifted["data"]["alternate_greetings"] == ["Hi."]
    assert lifted["data"]["mes_example"] == "a\nb"


def test_numbers_and_nulls_where_text_belongs_are_written_as_they_were_read():
    lifted = as_v3(v2(name=7, alternate_greetings=[None, "Third."]))
    assert lifted["data"]["name"] == "7"
    assert lifted["data"]["alternate_greetings"] == ["", "Third."]


def test_a_lorebook_is_lifted_entry_by_entry_and_one_by_number_stays():
    listed = as_v3(v2(character_book={"entries": [{"keys": ["k"], "mine": 1}]}))
    assert listed["data"]["character_book"] == {
        "extensions": {},
        "entries": [{"use_regex": False, "keys": ["k"], "mine": 1}],
    }
    numbered = {"entries": {"0": {"key": ["k"]}}}
    assert as_v3(v2(character_book=numbered))["data"]["character_book"] == numbered


def test_a_newer_version_keeps_its_number():
    newer = {**v3(), "spec_version": "3.1"}
    assert as_v3(newer)["spec_version"] == "3.1"


DECORATED = {
    "entries": [
        {
            "keys": ["a"],
            "content": "@@depth 4\n@@@scan_depth 2\n\nLore, me@@home.",
            "use_regex": True,
        }
    ]
}
RICH = v3(
    first_mes="Hm.", nickname="Tin", assets=[], character_book=DECORATED, creator_notes="By me."
)


def test_a_picture_holds_the_v3_card_and_a_v2_copy_that_says_so(tmp_path):
    export(put(tmp_path / "a.json", RICH), tmp_path / "b.png")
    found = told(tmp_path / "b.png")
    assert list(found) == ["ccv3", "chara"]
    assert found["ccv3"]["data"]["character_book"]["entries"] == DECORATED["entries"]
    copy = found["chara"]
    assert (copy["spec"], copy["spec_version"]) == ("chara_card_v2", "2.0")
    assert copy["data"]["creator_notes"] == f"{NOTICE}\n\nBy me."
    assert copy["data"]["character_book"]["entries"][0]["content"] == "Lore, me@@home."
    assert "nickname" not in copy["data"]
    assert [kind for kind, _ in chunks_of((tmp_path / "b.png").read_bytes())] == [
        b"IHDR",
        b"tEXt",
        b"tEXt",
        b"IDAT",
        b"IEND",
    ]


def test_a_generated_picture_has_as_many_pixels_as_it_says(tmp_path):
    export(put(tmp_path / "a.json", RICH), tmp_path / "b.png")
    found = dict(chunks_of((tmp_path / "b.png").read_bytes()))
    assert found[b"IHDR"] == struct.pack(">IIBBBBB", 64, 96, 8, 0, 0, 0, 0)
    assert zlib.decompress(found[b"IDAT"]) == (b"\0" + b"\xb0" * 64) * 96


def test_what_v2_and_v1_have_no_place_for_is_named(tmp_path):
    source = put(tmp_path / "a.json", RICH)
    assert export(source, tmp_path / "2.json", version=2) == (
        f"{tmp_path / '2.json'} has no place for: nickname, character_book decorators, "
        "character_book use_regex",
    )
    assert told(tmp_path / "2.json")["data"]["creator_notes"] == "By me."
    assert export(source, tmp_path / "1.json", version=1) == (
        f"{tmp_path / '1.json'} has no place for: nickname, character_book, creator_notes",
    )
    assert told(tmp_path / "1.json") == {
        "name": "Tin Lantern",
        "description": "A keeper of small lights. 守灯人。",
        "personality": "",
        "scenario": "",
        "first_mes": "Hm.",
        "mes_example": "",
    }


def test_a_v2_picture_has_no_v3_chunk(tmp_path):
    source = put(tmp_path / "a.png", png(t_ext(b"ccv3", packed(v3()))))
    export(source, tmp_path / "b.png", version=2)
    assert list(told(tmp_path / "b.png")) == ["chara"]


def test_from_a_picture_to_a_picture_only_the_cards_chunks_are_new(tmp_path):
    asset = t_ext(b"chara-ext-asset_:0", b"AAAA")
    others = [chunk(b"acTL", b"\0\0\0\1\0\0\0\0"), t_ext(b"Comment", b"x")]
    strange = chunk(b"quAl", b"q", checksum=7)
    raw = png(*others, t_ext(b"chara", packed(v2(name="old"))), asset, after=[strange], end=END)
    source = put(tmp_path / "a.png", raw + b"behind the picture")
    assert export(source, tmp_path / "b.png") == ()
    written = (tmp_path / "b.png").read_bytes()
    cards = [
        t_ext(
            word.encode(), base64.b64encode(json.dumps(card, ensure_ascii=False).encode() + b"\n")
        )
        for word, card in told_whole(written).items()
    ]
    assert written == png(*others, *cards, asset, after=[strange], end=END) + b"behind the picture"


def told_whole(raw):
    pairs = [
        data.split(b"\0", 1)
        for kind, data in chunks_of(raw.removesuffix(b"behind the picture"))
        if kind == b"tEXt" and data.startswith((b"ccv3\0", b"chara\0"))
    ]
    return {word.decode(): json.loads(base64.b64decode(value)) for word, value in pairs}


def test_a_picture_that_is_cut_off_cannot_be_kept(tmp_path):
    source = put(tmp_path / "a.png", png(t_ext(b"chara", packed(v2())), end=b""))
    with pytest.raises(InputError, match=r"is cut off, so its picture cannot be kept"):
        export(source, tmp_path / "b.png")
    assert list(tmp_path.iterdir()) == [source]


def test_from_charx_to_charx_only_the_card_is_new(tmp_path):
    members = [("assets/a.png", bytes(range(256)) * 40), ("module.risum", b"m"), ("empty/", b"")]
    raw = b"\xff\xd8\xff a JPEG" + charx(*members, ("card.json", text(v3(name="old"))))
    source = put(tmp_path / "a.charx", raw)
    assert export(source, tmp_path / "b.charx") == ()
    written = (tmp_path / "b.charx").read_bytes()
    assert written.startswith(b"\xff\xd8\xff a JPEGPK\3\4")
    with zipfile.ZipFile(io.BytesIO(written)) as file:
        assert file.testzip() is None
        assert file.namelist() == ["assets/a.png", "module.risum", "empty/", "card.json"]
        assert [(name, file.read(name)) for name, _ in members] == members
        assert json.loads(file.read("card.json"))["data"]["name"] == "old"
        packed_size = file.getinfo("assets/a.png").compress_size
    assert packed_size < 1000  # copied as it was packed


def test_a_streamed_zip_is_copied_with_its_sizes_in_place(tmp_path):
    """Writers that cannot seek put a member's sizes after its data."""

    class Stream(io.BytesIO):
        def seekable(self):
            return False

        def tell(self):
            raise OSError

    held = Stream()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.txt", b"a" * 99)
        file.writestr("card.json", text(v3()))
    source = put(tmp_path / "a.charx", held.getvalue())
    export(source, tmp_path / "b.charx")
    with zipfile.ZipFile(tmp_path / "b.charx") as file:
        assert file.testzip() is None
        assert file.read("a.txt") == b"a" * 99
        assert file.getinfo("a.txt").flag_bits & 8 == 0


def test_what_a_target_cannot_carry_is_named(tmp_path):
    zipped = put(tmp_path / "a.charx", charx(("card.json", text(v3())), ("assets/a.png", b"x")))
    picture = put(
        tmp_path / "a.png", png(t_ext(b"ccv3", packed(v3())), t_ext(b"chara-ext-asset_:7", b"AA"))
    )
    uris = ("embeded://b.png", "ccdefault:", "__asset:7")
    plain = put(tmp_path / "a.json", v3(assets=[{"uri": uri} for uri in uris]))
    lost = "assets that are not carried over"
    assert export(zipped, tmp_path / "1.json") == (f"{zipped}: {lost}: assets/a.png",)
    assert export(picture, tmp_path / "2.charx") == (f"{picture}: {lost}: 7",)
    assert export(picture, tmp_path / "2.json") == (f"{picture}: {lost}: the picture itself, 7",)
    assert export(load(plain).card, tmp_path / "3.png") == (
        f"a: {lost}: embeded://b.png, __asset:7",
    )


def test_a_picture_goes_into_a_charx_and_comes_back_byte_for_byte(tmp_path):
    plain, comment = png(), t_ext(b"Comment", b"x")
    source = put(tmp_path / "a.png", png(comment, t_ext(b"chara", packed(v2()))))
    assert export(source, tmp_path / "b.charx") == ()
    with zipfile.ZipFile(tmp_path / "b.charx") as file:
        assert file.testzip() is None
        assert file.read("assets/icon/images/main.png") == png(comment)
    assert load(tmp_path / "b.charx").card.original["data"]["assets"] == [
        {
            "type": "icon",
            "uri": "embeded://assets/icon/images/main.png",
            "name": "main",
            "ext": "png",
        }
    ]
    assert export(tmp_path / "b.charx", tmp_path / "c.png") == ()
    assert load(tmp_path / "c.png").card.original == as_v3(v2())
    bare = [c for c in chunks_of((tmp_path / "c.png").read_bytes()) if c[0] != b"tEXt"]
    assert bare == chunks_of(plain)


def test_the_fields_of_v3_are_written_as_they_were_read(tmp_path):
    fields = {
        "source": ["https://example.org/ash", "id-7"],
        "creation_date": 1700000000,
        "modification_date": 0,
        "creator_notes_multilingual": {"zh": "备注"},
        "nickname": "Ash",
        "group_only_greetings": ["All of you!"],
    }
    source = put(tmp_path / "a.json", v3(**fields))
    for name in ("b.json", "b.png", "b.charx"):
        export(source, tmp_path / name)
        data = load(tmp_path / name).card.original["data"]
        assert {key: data[key] for key in fields} == fields


def test_a_default_icon_becomes_a_png_whatever_it_said(tmp_path):
    icon = {"type": "icon", "name": "main", "uri": "ccdefault:", "ext": "webp"}
    source = put(tmp_path / "a.png", png(t_ext(b"ccv3", packed(v3(assets=[icon])))))
    export(source, tmp_path / "b.charx")
    path = "embeded://assets/icon/images/main.png"
    assert load(tmp_path / "b.charx").card.original["data"]["assets"] == [
        {**icon, "uri": path, "ext": "png"}
    ]


def test_the_path_of_an_icon_minds_case(tmp_path):
    icon = {"type": "icon", "name": "main", "uri": "embeded://assets/Ash.png", "ext": "png"}
    card = ("card.json", text(v3(assets=[icon])))
    source = put(tmp_path / "a.charx", charx(card, ("assets/ash.png", png())))
    (note,) = export(source, tmp_path / "b.png")
    assert note == f"{source}: assets that are not carried over: assets/ash.png"
    assert load(tmp_path / "b.png").card.original["data"]["assets"] == [icon]


def test_an_icon_that_is_no_png_stays_behind_and_a_plain_picture_takes_its_place(tmp_path):
    icon = {"type": "icon", "name": "main", "uri": "embeded://i.webp", "ext": "webp"}
    card = ("card.json", text(v3(assets=[icon])))
    source = put(tmp_path / "a.charx", charx(card, ("i.webp", b"RIFF")))
    lost = f"{source}: assets that are not carried over: i.webp"
    assert export(source, tmp_path / "b.png") == (lost,)
    assert load(tmp_path / "b.png").card.original["data"]["assets"] == [icon]


def test_a_card_becomes_a_yaml_character_and_the_rest_is_named(tmp_path):
    card = v2(personality="patient", scenario="A pier.", first_mes="Ahoy,\n你好。", tags=["t"])
    warned = export(put(tmp_path / "a.json", card), tmp_path / "b.yaml")
    assert warned == (f"{tmp_path / 'b.yaml'} has no place for: tags",)
    assert yaml.safe_load((tmp_path / "b.yaml").read_text()) == {
        "name": "Tin Lantern",
        "greeting": "Ahoy,\n你好。",
        "context": "A keeper of small lights. 守灯人。\n\nPersonality: patient\n\n"
        "Scenario: A pier.",
    }
    assert "你好" in (tmp_path / "b.yaml").read_text()


def test_a_yaml_character_comes_back_as_it_was(tmp_path):
    source = put(
        tmp_path / "a.yaml", b"name: 'No'\ncontext: c\ngreeting: hi\nx: [1, 2.5, '3', null]\n"
    )
    assert export(source, tmp_path / "b.yml") == ()
    assert load(tmp_path / "b.yml").card.original == load(source).card.original
    export(source, tmp_path / "c.json")
    assert told(tmp_path / "c.json")["x"] == [1, 2.5, "3", None]
    assert told(tmp_path / "c.json")["data"]["description"] == "c"


def test_a_card_made_in_code_is_written_from_its_fields(tmp_path):
    card = Card(id="a", language="zh", name="阿灰", persona="p", opening="o")
    export(card, tmp_path / "a.charx")
    assert load(tmp_path / "a.charx").card.model_copy(update={"original": {}}) == card


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("b.txt", {}, r"b\.txt has none of the endings \.json, \.png"),
        ("b.charx", {"version": 2}, r"b\.charx cannot be written as V2; choose JSON or PNG"),
        ("b.yaml", {"version": 1}, r"b\.yaml cannot be written as V1"),
        ("a.json", {}, r"a\.json exists; name another file, or say that it may be replaced"),
    ],
)
def test_an_export_that_cannot_be_meant_is_refused(tmp_path, name, options, message):
    source = put(tmp_path / "a.json", v2())
    with pytest.raises(InputError, match=message):
        export(source, tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == [source]


def test_a_file_may_be_replaced_by_itself(tmp_path):
    source = put(tmp_path / "a.png", png(t_ext(b"chara", packed(v2()))))
    export(source, source, overwrite=True)
    assert list(told(source)) == ["ccv3", "chara"]
    assert list(tmp_path.iterdir()) == [source]


def test_a_disk_that_refuses_is_told_in_a_sentence(tmp_path):
    source = put(tmp_path / "a.json", v2())
    with pytest.raises(StoreError, match=r"cannot write to .*b\.json"):
        export(source, source / "b.json")
    with pytest.raises(StoreError, match=r"cannot write to .*: File name too long"):
        export(source, tmp_path / f"{'a' * 300}.json")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)
UNKNOWN = st.dictionaries(st.text(max_size=8).map("x_".__add__), VALUES, max_size=4)
CARDS = st.builds(
    lambda name, greeting, inside, outside, extensions: {
        **outside,
        **as_v3(v2(name=name, first_mes=greeting, extensions={"x": extensions}, **inside)),
    },
    st.text(max_size=20),
    st.text(max_size=20),
    UNKNOWN,
    UNKNOWN,
    VALUES,
)
WRITTEN = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=40,
    deadline=None,  # each example waits for the disk four times
)


@WRITTEN
@given(card=CARDS, way=st.permutations([".png", ".charx", ".json", ".apng"]))
def test_unknown_fields_survive_every_way_through_the_carriers(tmp_path, card, way):
    path = put(tmp_path / "0.json", card)
    for number, ending in enumerate(way):
        target = tmp_path / f"{number + 1}{ending}"
        export(path, target, overwrite=True)
        path = target
    original = load(path).card.original
    original["data"].pop("assets", None)  # a CHARX names its picture
    assert original == card


@WRITTEN
@given(card=CARDS)
def test_through_v2_and_back_a_card_without_v3_fields_is_the_same(tmp_path, card):
    source = put(tmp_path / "a.json", card)
    export(source, tmp_path / "b.json", version=2, overwrite=True)
    export(tmp_path / "b.json", tmp_path / "c.json", overwrite=True)
    assert load(tmp_path / "c.json").card.original == card


@WRITTEN
@given(fields=UNKNOWN, greeting=st.text(max_size=20))
def test_a_yaml_character_survives_being_written(tmp_path, fields, greeting):
    character = {"name": "A", "greeting": greeting, **fields}
    card = load(put(tmp_path / "a.json", character)).card
    export(card, tmp_path / "b.yaml", overwrite=True)
    assert load(tmp_path / "b.yaml").card.original == character


@WRITTEN
@given(
    others=st.lists(st.tuples(st.sampled_from([b"tEXt", b"eXIf", b"prVt"]), st.binary(max_size=30)))
)
def test_foreign_chunks_survive_in_their_order(tmp_path, others):
    foreign = [(kind, b"k\0" + data) for kind, data in others]
    raw = png(*[chunk(*c) for c in foreign], t_ext(b"chara", packed(v2())))
    export(put(tmp_path / "a.png", raw), tmp_path / "b.png", overwrite=True)
    kept = chunks_of((tmp_path / "b.png").read_bytes())
    assert [c for c in kept if c in foreign] == foreign
    assert (b"IDAT", DATA[8:-4]) in kept

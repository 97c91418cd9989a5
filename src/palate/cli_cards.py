"""The command line of `palate cards`: parse, call, print; imports stay inside the commands."""

from __future__ import annotations

from pathlib import Path

import click


@click.group(name="cards")
def cards_group() -> None:
    """Character cards: check, import, export; and the library that comes with palate.

    SillyTavern V1, V2 and V3 as JSON, PNG, APNG or CHARX, and oobabooga's YAML.
    """


@cards_group.command(name="check")
@click.argument("places", nargs=-1, required=True)
@click.option("--show", is_flag=True, help="Print what a candidate is sent when the chat begins.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check_cards(places: tuple[str, ...], show: bool, as_json: bool) -> None:
    """Say what each card would be in a chat, and what is wrong with it.

    PLACES are card files, folders of them, studies (their cards folder and panel) or cards of the
    library (library:ID). Exit code 1 if a card cannot be played, 2 if one cannot be read.
    """
    from palate.card_commands import check_cards as check

    raise SystemExit(check(places, as_json=as_json, show=show))


@cards_group.command(name="import")
@click.argument("places", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Study (its cards folder) or any folder [default: the current one].",
)
def import_cards(places: tuple[Path, ...], into: Path) -> None:
    """Copy cards into a study, as V3 JSON under safe file names.

    \b
    palate cards import ~/cards/*.png --into my-study
    """
    from palate.card_commands import import_cards as copy

    raise SystemExit(copy(places, into=into))


@cards_group.command(name="export")
@click.argument("card")
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "version",
    type=click.Choice(["v1", "v2", "v3"]),
    default="v3",
    show_default=True,
    help="Of JSON and PNG.",
)
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
def export_cards(card: str, target: Path, version: str, overwrite: bool) -> None:
    """Write CARD to TARGET (.json, .png, .charx, .yaml).

    CARD is a card file, or cards of the library, which may go into a folder:

    \b
    palate cards export library:gu-qiuping-zh gu.png
    palate cards export library:panel-en my-study/cards
    """
    from palate.card_commands import export_cards as write

    write(card, target, version=version, overwrite=overwrite)


@cards_group.command(name="list")
@click.argument("place", required=False)
@click.option("--panel", "only_panel", is_flag=True, help="Only the frozen panel.")
@click.option("--language", type=click.Choice(["en", "zh"]))
@click.option("--genre")
@click.option("--relationship", help="What the user is to the character.")
@click.option("--mood")
@click.option("--rhythm", help="How the character speaks.")
@click.option("--difficulty", help="What the character asks of a candidate.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_cards(place: str | None, only_panel: bool, as_json: bool, **wanted: str | None) -> None:
    """List the cards of a study or folder; without one, those of the library.

    The library has 300 characters, each in English and Chinese. In a study.toml,
    panel = ["library:panel-en"] plays the frozen panel, "library:panel" it in both languages.
    """
    from palate.card_list import list_cards as find
    from palate.card_list import print_cards

    filters = {key: value for key, value in wanted.items() if value is not None}
    print_cards(find(place, filters=filters, only_panel=only_panel), as_json=as_json)

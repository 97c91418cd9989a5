"""The command line of `palate simulator`: parse, call, print; imports stay inside the commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from palate.types import SimulatorKind

STUDY = click.argument("study", type=click.Path(path_type=Path))


@click.group(name="simulator")
def simulator_group() -> None:
    """Simulated users: one per real person."""


@simulator_group.command("profile")
@STUDY
@click.option("--user", required=True, help="The user's id in the study.")
@click.option("--model", help="Model that writes it [default: the simulator's own model].")
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    help="Read whole sessions drawn by the seed, about this many tokens [default: all].",
)
@click.option("--force", is_flag=True, help="Replace a profile that is there.")
def simulator_profile(
    study: Path, user: str, model: str | None, max_tokens: int | None, force: bool
) -> None:
    """Write a user's profile from their training sessions, frozen by its hash.

    Held-out sessions are not read. A simulator of kind "profile" needs it.
    """
    from palate.commands import write_user_profile

    write_user_profile(study, user=user, model=model, force=force, max_tokens=max_tokens)


@simulator_group.command("train")
@STUDY
@click.option("--user", "users", multiple=True, help="The user's id in the study; repeatable.")
@click.option("--all-users", is_flag=True, help="Every user of the study, one after another.")
@click.option(
    "--base",
    default="local:smollm2-135m",
    show_default=True,
    help="The model adapted: the embedded one, a folder, or a hub name (org/model@revision).",
)
@click.option("--epochs", type=int, help="Times that every session is learned from [default: 3].")
@click.option("--max-steps", type=int, help="Stop after this many steps.")
@click.option("--rank", type=int, help="Rank of the adapter; its alpha is twice that [default: 8].")
@click.option(
    "--learning-rate",
    type=float,
    help="The highest [default: 5e-4, for bases over a billion parameters 2e-4].",
)
@click.option(
    "--max-tokens", type=int, help="Of an example; longer chats become several [default: 2048]."
)
@click.option(
    "--max-training-tokens",
    type=int,
    help="Learn from whole sessions drawn by the seed, this many tokens at most [default: all].",
)
@click.option("--batch-tokens", type=int, help="In memory at once [default: 2048].")
@click.option(
    "--target",
    "targets",
    multiple=True,
    help="Layers to adapt, by the end of their names; repeatable [default: chosen by kind].",
)
@click.option("--routed-experts", is_flag=True, help="Adapt a mixture's routed experts too.")
@click.option("--seed", type=int, help="[default: the study's].")
@click.option("--device", default="auto", show_default=True, help='"cpu", "cuda" or "cuda:1".')
@click.option(
    "--precision",
    type=click.Choice(["float32", "bfloat16"]),
    help="Of the products [default: bfloat16 where the processor has it].",
)
@click.option(
    "--gradient-checkpointing/--no-gradient-checkpointing",
    default=None,
    help="Much less memory for a third more time [default: on GPUs].",
)
@click.option("--force", is_flag=True, help="Replace an adapter of other settings.")
def simulator_train(
    study: Path,
    users: tuple[str, ...],
    all_users: bool,
    base: str,
    device: str,
    force: bool,
    **settings: object,
) -> None:
    """Train users' adapters from their training sessions (extra: train).

    Interrupted or killed, the same command takes the training up where it is. A simulator of kind
    "lora" needs it.

    \b
    palate simulator train my-study --user ada
    palate simulator train my-study --all-users --max-training-tokens 75000
    """
    from palate.train_commands import TrainOptions, train_simulators

    options = TrainOptions(base=base, device=device, force=force, settings=settings)
    train_simulators(study, users=users, all_users=all_users, options=options)


@simulator_group.command("recipe")
@click.option(
    "--base",
    default="Qwen/Qwen3.5-35B-A3B",
    show_default=True,
    help="The model to adapt: the paper's, a folder, or a hub name (its config.json is read).",
)
@click.option("--rank", type=click.IntRange(1, 1024), default=8, show_default=True)
@click.option("--routed-experts", is_flag=True, help="Adapt a mixture's routed experts too.")
@click.option("--max-tokens", type=click.IntRange(16), default=2048, show_default=True)
@click.option("--batch-tokens", type=click.IntRange(16), default=2048, show_default=True)
@click.option(
    "--tokens",
    type=click.IntRange(1),
    default=150_000,
    show_default=True,
    help="Of one person's sessions; a thousand exchanges are about as many.",
)
@click.option("--epochs", type=click.IntRange(1), default=3, show_default=True)
@click.option(
    "--utilisation",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.1,
    show_default=True,
    help="Share of a GPU's bound that training reaches.",
)
def simulator_recipe(
    base: str,
    rank: int,
    routed_experts: bool,
    max_tokens: int,
    batch_tokens: int,
    tokens: int,
    epochs: int,
    utilisation: float,
) -> None:
    """What training on a base takes: layers, memory, time; computed from its config.

    Nothing is trained and no weights are read (extra: train).
    """
    from palate.train_commands import check_extra

    check_extra()
    from palate.simulators.base_shape import shape_of
    from palate.simulators.recipes import Plan, recipe, told

    plan = Plan(rank, max_tokens, batch_tokens, tokens, epochs, utilisation=utilisation)
    shape = shape_of(base, rank=rank, tokens=max_tokens, routed_experts=routed_experts)
    click.echo(told(recipe(base, shape, plan)), nl=False)


@simulator_group.command("chat")
@STUDY
@click.option("--user", required=True, help="The user's id in the study.")
@click.option("--card", help="Id of a panel card [default: the first].")
@click.option(
    "--condition",
    type=click.Choice(["raw", "prompted", "profile", "lora"]),
    help="Kind of simulator [default: the study's].",
)
@click.option("--model", help="Model that plays the user [default: the study's].")
def simulator_chat(
    study: Path, user: str, card: str | None, condition: SimulatorKind | None, model: str | None
) -> None:
    """Talk with a user's simulator in the terminal; you play the character.

    \b
    The card's opening comes first, then the simulated user speaks and you answer.
      a line ending with \\   goes on in the next line
      /retry                 asks for the user's last message again
      /save FILE             keeps the chat in FILE as a session, to its end
      /quit, Ctrl-D          ends it
    """
    from palate.simulator_chat import chat

    chat(study, user=user, card=card, condition=condition, model=model)


@simulator_group.command("serve")
@STUDY
@click.argument("extra", nargs=-1, type=click.UNPROCESSED)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True)
@click.option("--base", help="Serve the adapters of this base, where the study's have several.")
@click.option("--print", "only_print", is_flag=True, help="Only print vLLM's command line.")
def simulator_serve(
    study: Path, extra: tuple[str, ...], host: str, port: int, base: str | None, only_print: bool
) -> None:
    """Serve the adapters of all users of kind "lora" with vLLM, until Ctrl-C.

    Waits until it is healthy, checks that every adapter changes what the base says, and prints the
    names for study.toml. EXTRA, after "--", goes to vLLM. For the embedded base no server is
    needed.

    \b
    palate simulator serve my-study --print
    palate simulator serve my-study -- --gpu-memory-utilization 0.8
    """
    from palate.serve_commands import serve_simulators

    serve_simulators(study, host=host, port=port, base=base, only_print=only_print, extra=extra)


@simulator_group.command("validate")
@STUDY
@click.option("--user", "users", multiple=True, help="A user's id; repeatable [default: all].")
@click.option(
    "--contexts",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="Places in held-out chats at most, a person; another number draws other places.",
)
@click.option(
    "--conditions",
    default="raw,prompted,profile,lora",
    show_default=True,
    help="Which simulators are compared, with commas between them.",
)
@click.option("--no-judge", is_flag=True, help="Only what is measured without a judge.")
@click.option(
    "--base",
    help="Model of the conditions without an adapter, where the study names the adapter's alone.",
)
@click.option(
    "--likelihood-tokens",
    type=click.IntRange(min=0),
    default=20_000,
    show_default=True,
    help="Of held-out chats read under every condition, a person; 0 leaves likelihoods out.",
)
@click.option("--device", default="auto", show_default=True, help="Where they are read.")
@click.option(
    "--plan", is_flag=True, help="Only show calls, tokens and money, and what is left out."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder to write or resume [default: validations/NAME in the study folder].",
)
def simulator_validate(
    study: Path,
    users: tuple[str, ...],
    contexts: int,
    conditions: str,
    no_judge: bool,
    base: str | None,
    likelihood_tokens: int,
    device: str,
    plan: bool,
    out: Path | None,
) -> None:
    """Show how near simulators come to their persons, on held-out sessions.

    The four conditions side by side: what a judge takes for human, what is measured without one,
    and a verdict in words. Interrupted, the same command takes it up again.

    \b
    palate simulator validate my-study --plan
    palate simulator validate my-study --user ada --no-judge
    """
    from palate.validate_commands import validate_simulators
    from palate.validation_conditions import conditions_named
    from palate.validation_setup import Options

    options = Options(
        users=users,
        conditions=conditions_named(conditions),
        contexts=contexts,
        judged=not no_judge,
        likelihood_tokens=likelihood_tokens,
        base=base,
        device=device,
        out=out,
    )
    raise SystemExit(validate_simulators(study, options, plan=plan))

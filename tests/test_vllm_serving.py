"""`palate simulator serve`: vLLM's command line, and a program of that name that is started."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from palate.errors import InputError
from palate.simulators.trained import read_trained
from palate.simulators.vllm import serve_command, served_names
from trained_folders import EMBEDDED, HUB, with_adapters, write_trained
from worlds import write_study

# A program named vllm: reads the command line that we write, and serves over HTTP as vLLM does.
FAKE = r"""#!PYTHON
import argparse, http.server, json, sys, time

print("INFO loading weights", flush=True)
parser = argparse.ArgumentParser()
parser.add_argument("serve"); parser.add_argument("base"); parser.add_argument("--revision")
parser.add_argument("--host"); parser.add_argument("--port", type=int)
parser.add_argument("--chat-template"); parser.add_argument("--enable-lora", action="store_true")
parser.add_argument("--max-lora-rank"); parser.add_argument("--max-loras")
parser.add_argument("--max-cpu-loras"); parser.add_argument("--lora-modules", nargs="+")
parser.add_argument("--fault", default="")
given = parser.parse_args()
modules = [json.loads(text) for text in given.lora_modules]
if given.fault == "dies":
    print("ValueError: LoRA rank 64 is greater than max_lora_rank 16", flush=True)
    sys.exit(3)
ready = time.monotonic() + 0.6

class Handler(http.server.BaseHTTPRequestHandler):
    def say(self, value, status=200):
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        if self.path == "/health":
            return self.say({}, 200 if time.monotonic() > ready else 503)
        own = [{"id": given.base, "root": given.base, "parent": None}]
        self.say({"data": own + [
            {"id": m["name"], "root": m["path"], "parent": m["base_model_name"]} for m in modules]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            return self.say({}, 404)
        used = given.base if given.fault == "ignores" else body["model"]
        message = {"role": "assistant", "content": used + " says so"}
        self.say({"model": body["model"], "choices": [{"message": message}]})
        if given.fault == "ends":
            print("CUDA error: out of memory", flush=True)
            sys.stdout.flush()
            import os; os._exit(7)

    def log_message(self, *arguments):
        pass

http.server.ThreadingHTTPServer((given.host, given.port), Handler).serve_forever()
"""


@pytest.fixture
def path_with_vllm(tmp_path):
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text(FAKE.replace("PYTHON", sys.executable), "utf-8")
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def study_of(folder, *users, **options):
    study = write_study(folder, users=users)
    with_adapters(study, **{user: {"base": HUB, "gguf": None, **options} for user in users})
    return study


def serve(study, *arguments, path=None):
    """The command in a process of its own, to its end."""
    command = [sys.executable, "-m", "palate", "simulator", "serve", str(study)]
    environment = {**os.environ, **({"PATH": path} if path else {})}
    return subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
    )


def said(result):
    return " ".join(result.stderr.split())


def trained(folder, user, **options):
    write_trained(folder / user, user, **{"base": HUB, "gguf": None, **options})
    return read_trained(folder / user)


def test_the_command_line_names_base_revision_template_and_every_adapter(tmp_path):
    adapters = {
        "u1": trained(tmp_path, "u1", rank=12),
        "u=2, the second": trained(tmp_path, "u=2, the second", rank=4),
    }
    command = serve_command(adapters, host="127.0.0.1", port=8000, extra=("--dtype", "float16"))
    modules = command[command.index("--lora-modules") + 1 : -2]
    assert command[: command.index("--lora-modules")] == (
        *("vllm", "serve", "tiny-test/base", "--revision", "a" * 40),
        *("--host", "127.0.0.1", "--port", "8000"),
        *("--chat-template", str(tmp_path / "u1" / "chat_template.jinja"), "--enable-lora"),
        *("--max-lora-rank", "16", "--max-loras", "2", "--max-cpu-loras", "2"),
    )
    assert [json.loads(module) for module in modules] == [
        {
            "name": "u1",
            "path": str(tmp_path / "u1" / "adapter"),
            "base_model_name": "tiny-test/base",
        },
        {
            "name": served_names(["u=2, the second"], "tiny-test/base")["u=2, the second"],
            "path": str(tmp_path / "u=2, the second" / "adapter"),
            "base_model_name": "tiny-test/base",
        },
    ]
    assert command[-2:] == ("--dtype", "float16")


def test_an_id_that_cannot_stand_in_a_models_name_gets_one_that_can():
    names = served_names(["ada-1", "two words", "名", "base", "-x"], "base")
    assert names["ada-1"] == "ada-1"
    assert len(set(names.values())) == 5
    assert all(
        name.startswith("user-") and name.isascii() and " " not in name
        for user, name in names.items()
        if user != "ada-1"
    )


def test_a_base_in_a_folder_has_no_revision_that_a_hub_knows(tmp_path):
    base = {**HUB, "name": str(tmp_path / "base"), "revision": "sha256:" + "0" * 64}
    command = serve_command({"u": trained(tmp_path, "u", base=base)}, host="h", port=1)
    assert command[2] == str(tmp_path / "base")
    assert "--revision" not in command


def test_a_hub_name_written_with_its_revision_is_served_at_the_recorded_commit(tmp_path):
    base = {**HUB, "name": "tiny-test/base@v1"}
    command = serve_command({"u": trained(tmp_path, "u", base=base)}, host="h", port=1)
    assert command[2:5] == ("tiny-test/base", "--revision", "a" * 40)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"weights": b"the same"}, "users u1 and u2 have the same adapter"),
        ({"base": {**HUB, "revision": "b" * 40}}, "u1 and u2 belong to two bases"),
        ({"form": {"template_sha256": "dd"}}, "were trained with two chat templates"),
        ({"rank": 1024}, "adapters of rank 512 at most, and one has 1024"),
    ],
)
def test_adapters_that_one_server_cannot_hold_together_are_refused(tmp_path, second, message):
    first = trained(tmp_path, "u1", weights=b"the same")
    with pytest.raises(InputError, match=message):
        serve_command({"u1": first, "u2": trained(tmp_path, "u2", **second)}, host="h", port=1)


@pytest.mark.parametrize("base", [{"name": "--trust-remote-code"}, {"revision": "--config=x"}])
def test_a_record_cannot_slip_an_option_into_the_command_line(tmp_path, base):
    adapters = {"ada": trained(tmp_path, "ada", base={**HUB, **base})}
    with pytest.raises(InputError, match="reads as an option"):
        serve_command(adapters, host="127.0.0.1", port=8000)


def test_print_shows_the_command_and_starts_nothing(tmp_path):
    study = study_of(tmp_path, "u1", "u2")
    result = serve(study, "--print", "--port", 8123, "--", "--dtype", "float16")
    assert result.returncode == 0, result.stderr
    command = shlex.split(result.stdout)
    assert command[:3] == ["vllm", "serve", "tiny-test/base"]
    assert command[-2:] == ["--dtype", "float16"]
    assert not (study / "simulators" / "vllm.log").exists()


def test_the_embedded_base_needs_no_server(tmp_path):
    study = study_of(tmp_path, "u1", base=EMBEDDED, gguf=b"x")
    result = serve(study)
    assert (result.returncode, result.stdout[:20]) == (0, "No server is needed:")


def test_a_study_without_adapters_has_nothing_to_serve(tmp_path):
    result = serve(write_study(tmp_path))
    assert result.returncode == 2
    assert 'has no user whose simulator is of kind "lora"' in said(result)


def test_two_bases_are_served_one_at_a_time(tmp_path):
    study = study_of(tmp_path, "u1", "u2")
    write_trained(study / "simulators" / "u2", "u2", base={**HUB, "name": "other/base"}, gguf=None)
    result = serve(study, "--print")
    assert result.returncode == 2
    assert "choose with --base" in said(result)
    chosen = serve(study, "--print", "--base", "other/base")
    assert "other/base" in chosen.stdout
    assert "u1" not in json.loads(shlex.split(chosen.stdout)[-1]).values()
    none = serve(study, "--print", "--base", "third/base")
    assert "they belong to other/base, tiny-test/base" in said(none)


def test_without_vllm_one_sentence_says_so(tmp_path):
    result = serve(study_of(tmp_path, "u1"), path=str(tmp_path))
    assert result.returncode == 2
    assert "the program vllm is not on the PATH" in said(result)


def test_a_port_that_is_taken_is_refused(tmp_path, path_with_vllm):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = serve(study_of(tmp_path, "u1"), "--port", port, path=path_with_vllm)
    assert result.returncode == 2
    assert f"port {port} of 127.0.0.1 cannot be used" in said(result)


def lines_until(process, wanted):
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if wanted in line:
            return lines
    raise AssertionError(process.stderr.read())


def has_ended(pid, within_s=15):
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def listening(port):
    """The process that holds a port, found by its command line."""
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes().decode().split("\0")
        except (OSError, UnicodeDecodeError):
            continue
        if str(port) in command and any(part.endswith("/vllm") for part in command):
            return int(folder.name)
    raise AssertionError(f"nothing serves at {port}")


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.parametrize(
    ("ending", "interrupts"),
    [
        pytest.param(signal.SIGINT, signal.SIG_DFL, id="Ctrl-C"),
        pytest.param(signal.SIGTERM, signal.SIG_DFL, id="a polite kill"),
        pytest.param(signal.SIGTERM, signal.SIG_IGN, id="a polite kill in the background"),
    ],
)
def test_it_waits_until_healthy_checks_the_adapters_names_them_and_stops_with_us(
    tmp_path, path_with_vllm, port, ending, interrupts
):
    study = study_of(tmp_path, "u1", "two words")
    command = [
        sys.executable,
        "-m",
        "palate",
        "simulator",
        "serve",
        str(study),
        "--port",
        str(port),
    ]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PATH": path_with_vllm},
        # As a shell leaves it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, interrupts),  # noqa: PLW1509
    ) as process:
        try:
            lines = lines_until(process, "two words")
            server = listening(port)
            process.send_signal(ending)
            code = process.wait(30)
            errors = process.stderr.read()
        finally:
            process.kill()
    name = served_names(["two words"], "tiny-test/base")["two words"]
    url = f"http://127.0.0.1:{port}/v1"
    assert lines == [
        "Ready. In study.toml:",
        f'id = "u1"   simulator = {{ kind = "lora", path = "simulators/u1", '
        f'model = "openai:u1@{url}" }}',
        f'id = "two words"   simulator = {{ kind = "lora", path = "simulators/two words", '
        f'model = "openai:{name}@{url}" }}',
    ]
    assert code == 0, errors
    assert "Stopped." in errors
    assert has_ended(server)
    assert "loading weights" in (study / "simulators" / "vllm.log").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        ("dies", 2, "vllm did not start (code 3): INFO loading weights / ValueError: LoRA rank 64"),
        ("ignores", 2, "user u1: adapter has no effect"),
        ("ends", 2, "the adapter of user u1 could not be checked"),
    ],
)
def test_a_server_that_fails_is_told_in_one_sentence(
    tmp_path, path_with_vllm, port, fault, code, message
):
    study = study_of(tmp_path, "u1")
    toml = (study / "study.toml").read_text("utf-8")
    quick = f'\n[endpoints."http://127.0.0.1:{port}/v1"]\nmax_attempts = 1\n'
    (study / "study.toml").write_text(toml + quick, "utf-8")
    result = serve(study, "--port", port, "--", "--fault", fault, path=path_with_vllm)
    assert result.returncode == code
    assert message in said(result)
    assert "Traceback" not in result.stderr

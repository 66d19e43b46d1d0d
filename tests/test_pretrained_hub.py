"""Names of the hub: the cache, a hub on this computer, and no network at all."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

import pytest

import gtcontrol as gt
from gtcontrol.errors import ModelFileInvalid
from tests import real_models, tiny_models

real_models.require()

from gtcontrol.pretrained.adapters import location  # noqa: E402

load = gt.pretrained.load

REVISION = "0123456789abcdef0123456789abcdef01234567"
MODERNBERT = "answerdotai/ModernBERT-base"


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache, and no settings of the user."""
    folder = tmp_path / "hub"
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    for proxy in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(proxy, raising=False)
        monkeypatch.delenv(proxy.upper(), raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder))
    # transformers 4 has a copy.
    old = "transformers.utils.hub.TRANSFORMERS_CACHE"
    monkeypatch.setattr(old, str(folder), raising=False)
    return folder


@pytest.fixture
def no_network(monkeypatch):
    """A computer without one; returns how often it was tried."""
    tries = []

    def refuse(*args, **kwargs):
        tries.append(args)
        raise OSError("Network is unreachable")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return tries


def put(cache: Path, name: str, folder: Path) -> None:
    """Put a checkpoint into the cache, as a download would."""
    repository = cache / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / REVISION
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(REVISION)
    for path in folder.iterdir():
        (snapshot / path.name).write_bytes(path.read_bytes())


def test_presets_are_short_names():
    assert gt.pretrained.presets()["modernbert"] == MODERNBERT
    assert gt.pretrained.presets()["deit"] == "facebook/deit-tiny-patch16-224"


@pytest.mark.parametrize("name", ["modernbert", MODERNBERT, "deit"])
def test_without_a_network_one_line_says_so(cache, no_network, name, capfd):
    with pytest.raises(ModelFileInvalid) as error:
        load(name)
    text = str(error.value)
    assert gt.pretrained.presets().get(name, name) in text
    assert "cannot be reached" in text
    assert "give a folder" in text
    assert "\n" not in text
    assert 1 <= len(no_network) <= 4  # no dozens of retries
    assert capfd.readouterr() == ("", "")


def test_the_user_can_forbid_the_network(cache, no_network, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelFileInvalid, match="HF_HUB_OFFLINE"):
        load("modernbert")
    assert not no_network


def test_what_is_no_name_is_not_asked_for(cache, no_network):
    for text in ("./models/bert", "some model", "a/b/c", "/nowhere", "missing.onnx"):
        with pytest.raises(ModelFileInvalid, match="no folder, no ONNX file, and no name"):
            load(text)
    assert not no_network


@pytest.mark.parametrize(
    ("preset", "variant"), [("modernbert", "modernbert"), ("deit", "vit"), ("deit", "deit")]
)
def test_presets_in_the_cache_need_no_network(cache, no_network, tmp_path, preset, variant):
    """The small models are of the same classes: that of DeiT's tiny one is a ViT."""
    name = gt.pretrained.presets()[preset]
    put(cache, name, tiny_models.save(tiny_models.build(variant), tmp_path / "made"))
    stack = load(preset)
    assert stack.name == name
    assert stack.family == variant
    assert stack.numerics < 1e-5
    assert not no_network


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of the hub as a download needs."""

    files: ClassVar[dict[str, bytes]] = {}

    def answer(self, body: bool) -> None:
        name = self.path.rpartition("/resolve/main/")[2]
        if not self.path.startswith("/someone/small/") or name not in self.files:
            code, error = 404, "EntryNotFound"
            if not self.path.startswith("/someone/small/"):
                error = "RepoNotFound"
            self.send_response(code)
            self.send_header("X-Error-Code", error)
            self.send_header("X-Repo-Commit", REVISION)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content = self.files[name]
        self.send_response(200)
        self.send_header("X-Repo-Commit", REVISION)
        self.send_header("ETag", f'"{sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch, cache, tmp_path):
    folder = tiny_models.save(tiny_models.build("bert"), tmp_path / "served")
    monkeypatch.setattr(Hub, "files", {p.name: p.read_bytes() for p in folder.iterdir()})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    for module in ("constants", "file_download"):  # where versions have it
        place = f"huggingface_hub.{module}.HUGGINGFACE_CO_URL_TEMPLATE"
        monkeypatch.setattr(place, template, raising=False)
    connect = socket.socket.connect

    def only_here(self, target):
        if target[0] != "127.0.0.1":
            raise OSError(f"the test asks for {target}")
        return connect(self, target)

    monkeypatch.setattr(socket.socket, "connect", only_here)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_name_is_downloaded_once(hub, cache, no_network_after, capfd):
    stack = load("someone/small")
    assert stack.name == "someone/small"
    assert stack.numerics < 1e-5
    assert any(cache.rglob("model.safetensors"))
    no_network_after()
    assert load("someone/small").depth == stack.depth
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def no_network_after(monkeypatch):
    def close() -> None:
        monkeypatch.setattr(location, "_reach", lambda name: pytest.fail("asked the network"))

    return close


def test_an_unknown_name_is_said_to_be_unknown(hub, cache):
    with pytest.raises(ModelFileInvalid, match="the hub has no model someone/other"):
        load("someone/other")


def test_a_repository_without_weights_is_named(hub, cache, monkeypatch):
    monkeypatch.setattr(Hub, "files", {"config.json": json.dumps({}).encode()})
    with pytest.raises(ModelFileInvalid, match="has no weights"):
        load("someone/small")

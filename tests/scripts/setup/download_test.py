"""Downloads: resumed, checked, and explained when they cannot be had.  The server is local."""

import hashlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from run_model_tools.errors import ToolError
from run_model_tools.setup.download import Unreachable, download

DATA = bytes(range(256)) * 1000
HASH = hashlib.sha256(DATA).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves DATA: /file with ranges, /plain without, /cut half of it, /slow never."""

    def do_GET(self):
        asked = self.headers.get("Range")
        self.server.ranges.append(asked)
        if self.path == "/slow":
            self.server.stop.wait(30)
            return
        if self.path not in ("/file", "/plain", "/cut"):
            self.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if self.path == "/plain" or not asked:
            start = 0
            self.send_response(200)
        elif start >= len(DATA):
            self.send_error(416)
            return
        else:
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(DATA) - 1}/{len(DATA)}")
        body = DATA[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:len(body) // 2] if self.path == "/cut" else body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.ranges, http.stop = [], threading.Event()
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    http.url = f"http://127.0.0.1:{http.server_port}"
    yield http
    http.stop.set()
    http.shutdown()
    thread.join()
    http.server_close()


def test_a_file_is_fetched_and_checked(server, tmp_path, capfd):
    path = tmp_path / "new" / "file.onnx"
    download(f"{server.url}/file", path, HASH, len(DATA))
    assert path.read_bytes() == DATA
    assert [p.name for p in path.parent.iterdir()] == ["file.onnx"]
    assert capfd.readouterr() == ("", ""), "quiet where nobody looks"


def test_first_digits_of_the_hash_do(server, tmp_path):
    download(f"{server.url}/file", tmp_path / "f", HASH[:10])
    assert (tmp_path / "f").read_bytes() == DATA


@pytest.mark.parametrize("path", ["file", "plain"])
def test_a_download_that_broke_off_is_gone_on_with(server, tmp_path, path):
    (tmp_path / "f.part").write_bytes(DATA[:1000])
    download(f"{server.url}/{path}", tmp_path / "f", HASH, len(DATA))
    assert (tmp_path / "f").read_bytes() == DATA
    assert server.ranges == ["bytes=1000-"]


def test_a_connection_that_breaks_leaves_its_part(server, tmp_path):
    for part in (len(DATA) // 2, len(DATA) * 3 // 4):
        with pytest.raises(Unreachable, match="broke off|more expected"):
            download(f"{server.url}/cut", tmp_path / "f", HASH, len(DATA))
        assert (tmp_path / "f.part").read_bytes() == DATA[:part]
    download(f"{server.url}/file", tmp_path / "f", HASH, len(DATA))
    assert (tmp_path / "f").read_bytes() == DATA


def test_a_part_that_is_whole_needs_no_server(tmp_path):
    (tmp_path / "f.part").write_bytes(DATA)
    download("http://127.0.0.1:9/f", tmp_path / "f", HASH, len(DATA))
    assert (tmp_path / "f").read_bytes() == DATA


def test_a_part_beyond_the_end_is_begun_anew(server, tmp_path):
    """Without a size nobody can tell before the server does (416)."""
    (tmp_path / "f.part").write_bytes(DATA + b"more")
    download(f"{server.url}/file", tmp_path / "f", HASH)
    assert (tmp_path / "f").read_bytes() == DATA
    assert len(server.ranges) == 2


@pytest.mark.parametrize("part", [b"", b"other" * 100])
def test_another_file_is_not_kept(server, tmp_path, part):
    """Nor is a part of another file: the next try begins anew."""
    if part:
        (tmp_path / "f.part").write_bytes(part)
    with pytest.raises(ToolError, match="SHA-256") as caught:
        download(f"{server.url}/file", tmp_path / "f", HASH if part else "0" * 64, len(DATA))
    assert caught.value.code == 6
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_too_long_is_not_stored(server, tmp_path):
    with pytest.raises(Unreachable, match="longer than 1000"):
        download(f"{server.url}/file", tmp_path / "f", HASH, 1000)
    assert not (tmp_path / "f").exists()
    assert (tmp_path / "f.part").stat().st_size <= 1000


def test_answers_that_are_no_file(server, tmp_path):
    with pytest.raises(Unreachable, match="HTTP 404") as caught:
        download(f"{server.url}/none", tmp_path / "f", HASH)
    assert caught.value.code == 3
    with pytest.raises(Unreachable, match="refused"):
        download("http://127.0.0.1:9/f", tmp_path / "f", HASH)
    assert list(tmp_path.iterdir()) == []


def test_a_silent_server_is_given_up(server, tmp_path):
    start = time.monotonic()
    with pytest.raises(Unreachable, match="timed out"):
        download(f"{server.url}/slow", tmp_path / "f", HASH, timeout=0.3)
    assert time.monotonic() - start < 5

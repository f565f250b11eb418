import dataclasses
import logging

import pooch
import pytest

from dualogic.errors import DataError, DownloadError
from dualogic_paper.data import download as module
from dualogic_paper.data.download import download
from official_files import plain_source, serve

BODY = bytes(range(256)) * 4000  # several chunks


@pytest.fixture
def server():
    with serve({"file.bin": BODY}) as (base, behaviour):
        behaviour.source = plain_source(base, "file.bin", BODY)
        yield behaviour


def test_a_file_is_fetched_once_with_progress(server, tmp_path):
    seen = []
    path = download(server.source, tmp_path, lambda *now: seen.append(now))
    assert path == tmp_path / "file.bin"
    assert path.read_bytes() == BODY
    assert seen[0] == ("file.bin", 0, len(BODY))
    assert seen[-1] == ("file.bin", len(BODY), len(BODY))
    assert download(server.source, tmp_path) == path
    assert server.requests == [("/file.bin", None)]
    assert [path.name for path in tmp_path.iterdir()] == ["file.bin"]


def test_a_cut_connection_is_continued(server, tmp_path):
    server.cuts = 2
    assert download(server.source, tmp_path).read_bytes() == BODY
    first, second, third = (int(asked[6:-1]) if asked else 0 for _, asked in server.requests)
    assert first == 0
    assert len(BODY) // 2 - module.CHUNK < second <= len(BODY) // 2
    assert (len(BODY) + second) // 2 - module.CHUNK < third <= (len(BODY) + second) // 2


def test_the_next_call_goes_on_where_the_last_one_stopped(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(BODY[:1000])
    seen = []
    assert download(server.source, tmp_path, lambda *now: seen.append(now)).read_bytes() == BODY
    assert server.requests == [("/file.bin", "bytes=1000-")]
    assert seen[0] == ("file.bin", 1000, len(BODY))


def test_a_server_that_keeps_failing_is_named_and_what_came_is_kept(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(BODY[:1000])
    server.failures = 100
    with pytest.raises(
        DownloadError, match=r"file\.bin cannot be fetched \(503 .* goes on after the 1000 bytes in .*file\.bin\.part"
    ):
        download(server.source, tmp_path)
    assert len(server.requests) == module.STALLS
    assert not (tmp_path / "file.bin").exists()
    server.failures = 0
    assert download(server.source, tmp_path).read_bytes() == BODY


def test_a_server_without_ranges_starts_again(server, tmp_path):
    server.ranges = False
    server.cuts = 1
    assert download(server.source, tmp_path).read_bytes() == BODY


def test_a_server_without_lengths(server, tmp_path):
    server.lengths = False
    assert download(server.source, tmp_path).read_bytes() == BODY


def test_a_part_that_is_already_whole(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(BODY)
    assert download(server.source, tmp_path).read_bytes() == BODY


def test_a_part_that_is_longer_than_the_file_is_thrown_away(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(BODY + b"more")
    assert download(server.source, tmp_path).read_bytes() == BODY


@pytest.mark.parametrize("start", [b"", b"the beginning of something else"])
def test_corrupt_bytes_are_refused_named_and_deleted(server, start, tmp_path):
    if start:
        (tmp_path / "file.bin.part").write_bytes(start)
    else:
        server.files["file.bin"] = BODY[:-1] + b"?"
    with pytest.raises(DataError, match=r"http://127\.0\.0\.1:\d+/file\.bin is not the official file, or came corrupt"):
        download(server.source, tmp_path)
    assert not list(tmp_path.iterdir())
    server.files["file.bin"] = BODY
    assert download(server.source, tmp_path).read_bytes() == BODY


def test_a_damaged_file_that_was_there_is_fetched_again(server, tmp_path):
    (tmp_path / "file.bin").write_bytes(BODY[:-1])
    assert download(server.source, tmp_path).read_bytes() == BODY


def test_an_address_that_is_gone_is_asked_once(server, tmp_path):
    gone = dataclasses.replace(server.source, url=server.source.url + ".old")
    with pytest.raises(DownloadError, match=r"file\.bin\.old cannot be fetched \(404"):
        download(gone, tmp_path)
    assert len(server.requests) == 1


def test_no_server_at_all(tmp_path):
    with serve({}) as (base, _):
        source = plain_source(base, "file.bin", BODY)
    with pytest.raises(DownloadError, match=r"file\.bin cannot be fetched \(.*refused"):
        download(source, tmp_path)


def test_poochs_messages_come_back_afterwards(server, tmp_path):
    before = pooch.get_logger().level
    download(server.source, tmp_path)
    assert pooch.get_logger().level == before != logging.WARNING

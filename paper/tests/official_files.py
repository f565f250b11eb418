"""Tiny data sets in the formats of the official files, and a local server that can misbehave."""

import bz2
import dataclasses
import gzip
import hashlib
import io
import json
import pickle
import re
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from PIL import Image

from dualogic_paper.data import download, schema
from dualogic_paper.data.download import Source

ALPHABET = "123456789+-*/"


@dataclasses.dataclass
class Behaviour:
    """How the server answers: bytes by path, and what goes wrong."""

    files: dict
    cuts: int = 0  # answers that break off half-way
    failures: int = 0  # answers with status 503
    ranges: bool = True
    lengths: bool = True
    requests: list = dataclasses.field(default_factory=list)


@contextmanager
def serve(files):
    """Serve files on 127.0.0.1; yields the base address and the behaviour, which a test may change."""
    behaviour = Behaviour(dict(files))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked = self.headers.get("Range")
            behaviour.requests.append((self.path, asked))
            whole = behaviour.files.get(self.path.lstrip("/"))
            if whole is None or behaviour.failures > 0:
                behaviour.failures -= whole is not None
                return self.send_error(404 if whole is None else 503)
            start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked and behaviour.ranges else 0
            if start >= len(whole) and start:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(whole)}")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            body = whole[start:]
            self.send_response(206 if start else 200)
            if behaviour.lengths:
                self.send_header("Content-Length", str(len(body)))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
            self.end_headers()
            if behaviour.cuts > 0:
                behaviour.cuts -= 1
                body = body[: len(body) // 2]
            self.wfile.write(body)
            self.close_connection = True
            return None

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", behaviour
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def make_official(name, seed=0):
    """A tiny set: the arrays its cache should hold, and the official files (bytes by name) that say the same."""
    return MAKERS[name](np.random.default_rng(seed))


def pretend(monkeypatch, name, arrays, files, base="http://127.0.0.1:9"):
    """Let the tiny set be the real one: its shapes, its content, its files and their checksums."""
    entries = schema.SHAPES[name]
    small = {key: dataclasses.replace(entries[key], shape=arrays[key].shape) for key in entries}
    monkeypatch.setitem(schema.SHAPES, name, small)
    monkeypatch.setitem(schema.REFERENCE, name, schema.digest_content(name, arrays))
    official = tuple(
        dataclasses.replace(source, url=f"{base}/{source.file}", md5=hashlib.md5(files[source.file]).hexdigest())
        if not source.by_hand
        else source
        for source in download.SOURCES[name]
    )
    assert {source.file for source in official} == set(files)
    monkeypatch.setitem(download.SOURCES, name, official)
    return official


def plain_source(base, file, body):
    return Source(file, f"{base}/{file}", hashlib.md5(body).hexdigest())


def random_images(rng, *shape):
    return rng.integers(0, 256, shape, dtype=np.uint8)


def make_mnist(rng):
    arrays, files = {}, {}
    for split, prefix, rows in (("train", "train", 6), ("test", "t10k", 3)):
        images, labels = random_images(rng, rows, 28, 28), rng.integers(0, 10, rows, dtype=np.uint8)
        arrays |= {f"{split}_x": images, f"{split}_y": labels}
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
            files[f"{prefix}-{kind}-ubyte.gz"] = gzip.compress(header + array.tobytes())
    return arrays, files


def make_usps(rng):
    arrays, files = {}, {}
    for split, file, rows in (("train", "usps.bz2", 6), ("test", "usps.t.bz2", 3)):
        images, labels = random_images(rng, rows, 16, 16), rng.integers(0, 10, rows, dtype=np.uint8)
        lines = []
        for image, label in zip(images, labels):
            values = [f"{k}:{value / 127.5 - 1:.3g}" for k, value in enumerate(image.ravel().tolist(), start=1)]
            lines.append(f"{label + 1} {' '.join(values)} \n")
        arrays |= {f"{split}_x": images, f"{split}_y": labels}
        files[file] = bz2.compress("".join(lines).encode())
    return arrays, files


def make_cifar10(rng):
    arrays, members = {}, {}
    for split, member in (("train", "data_batch_1"), ("other", "data_batch_2"), ("test", "test_batch")):
        images, labels = random_images(rng, 4, 32, 32, 3), rng.integers(0, 10, 4, dtype=np.uint8)
        batch = {"batch_label": member, "labels": labels.tolist(), "data": to_rows(images), "filenames": ["a.png"] * 4}
        members[f"cifar-10-batches-py/{member}"] = old_pickle(batch)
        if split != "other":  # the cache holds the first training batch only
            arrays |= {f"{split}_x": images, f"{split}_y": labels}
    return arrays, {"cifar-10-python.tar.gz": make_tar(members)}


def make_cifar100(rng):
    arrays, members = {}, {"cifar-100-python/meta": old_pickle({"fine_label_names": []})}
    for split in ("test", "train"):
        images, fine = random_images(rng, 6, 32, 32, 3), np.array([3, 3, 3, 50, 50, 99], np.uint8)
        coarse, names = fine // 5, ["a_1.png", "a_2.png", "b_1.png", "a_1.png", "c_9.png", "a_0.png"]
        arrays |= {f"{split}_x": images, f"{split}_y": fine, f"{split}_coarse": coarse}
        order = rng.permutation(6)
        batch = {
            "filenames": [names[k] for k in order],
            "fine_labels": fine[order].tolist(),
            "coarse_labels": coarse[order].tolist(),
            "data": to_rows(images[order]),
        }
        members[f"cifar-100-python/{split}"] = old_pickle(batch)
    return arrays, {"cifar-100-python.tar.gz": make_tar(members)}


def make_stl10(rng):
    large, labels = random_images(rng, 5, 96, 96, 3), rng.integers(0, 10, 5, dtype=np.uint8)
    small = np.stack([np.asarray(Image.fromarray(image).resize((32, 32), Image.Resampling.BILINEAR)) for image in large])
    members = {
        "stl10_binary/test_X.bin": large.transpose(0, 3, 2, 1).tobytes(),
        "stl10_binary/test_y.bin": (labels + 1).tobytes(),
        "stl10_binary/train_y.bin": b"\x01",
    }
    return {"test_x": small, "test_y": labels}, {"stl10_binary.tar.gz": make_tar(members)}


def make_hwf(rng):
    pictures = random_images(rng, 26, 45, 45)  # two of each symbol
    folders = [{"*": "times", "/": "div"}.get(symbol, symbol) for symbol in ALPHABET]
    members, paths = {}, {}
    for row, picture in enumerate(pictures):
        for copy in ("", "_again"):  # every picture under two names
            paths[row, copy] = f"{folders[row % 13]}/{row}{copy}.jpg"
            buffer = io.BytesIO()
            Image.fromarray(picture).save(buffer, format="PNG")  # without loss, whatever the name says
            members[f"data/Handwritten_Math_Symbols/{paths[row, copy]}"] = buffer.getvalue()
    arrays = {"symbols": pictures[:0], "alphabet": np.array(list(ALPHABET))}
    rows = []  # of the pictures, in the order of their first use
    for split, texts in (("train", ["7", "1+2", "3*4-8/2"]), ("test", ["9", "5-6*7"])):
        formulas = []
        images, labels = np.full((len(texts), 7), -1, np.int32), np.full((len(texts), 7), -1, np.int8)
        for i, text in enumerate(texts):
            shown = [ALPHABET.index(symbol) + 13 * int(rng.integers(2)) for symbol in text]
            rows += [row for row in dict.fromkeys(shown) if row not in rows]
            images[i, : len(text)] = [rows.index(row) for row in shown]
            labels[i, : len(text)] = [row % 13 for row in shown]
            names = [paths[row, "_again" if rng.integers(2) else ""] for row in shown]
            formulas.append({"id": f"{split}_{i}", "img_paths": names, "expr": text, "res": eval(text)})
        members[f"data/expr_{split}.json"] = json.dumps(formulas).encode()
        arrays |= {f"{split}_images": images, f"{split}_labels": labels}
        arrays[f"{split}_result"] = np.array([formula["res"] for formula in formulas], np.float64)
    arrays["symbols"] = pictures[rows]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return arrays, {"HWF.zip": buffer.getvalue()}


def to_rows(images):
    return images.transpose(0, 3, 1, 2).reshape(len(images), -1)


def old_pickle(value):
    """As Python 2 and its numpy wrote it: the module of arrays had another name then."""
    return pickle.dumps(value, protocol=2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


def make_tar(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, body in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()


MAKERS = {
    "mnist": make_mnist,
    "usps": make_usps,
    "hwf": make_hwf,
    "cifar100": make_cifar100,
    "cifar10": make_cifar10,
    "stl10": make_stl10,
}

"""The official files of each data set, and where they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
CIFAR = "https://www.cs.toronto.edu/~kriz"
STL10 = "http://ai.stanford.edu/~acoates/stl10"
HWF = "https://drive.google.com/file/d/1G07kw-wK-rqbg_85tuB7FNfA49q8lvoy/view"


@dataclasses.dataclass(frozen=True)
class Source:
    """One official file."""

    file: str  # its name
    url: str  # where it is fetched from, or, for a file that only a person can fetch, the page to open
    md5: str = ""  # as published; empty if none is
    by_hand: bool = False  # whether only a person can fetch it


def _at(base: str, file: str, md5: str) -> Source:
    return Source(file, f"{base}/{file}", md5)


SOURCES: Mapping[str, tuple[Source, ...]] = {
    "mnist": (
        _at(MNIST, "train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        _at(MNIST, "train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        _at(MNIST, "t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        _at(MNIST, "t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ),
    "usps": (
        _at(LIBSVM, "usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197"),
        _at(LIBSVM, "usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118"),
    ),
    "hwf": (Source("HWF.zip", HWF, by_hand=True),),
    "cifar100": (_at(CIFAR, "cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"),),
    "cifar10": (_at(CIFAR, "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"),),
    "stl10": (_at(STL10, "stl10_binary.tar.gz", "91f7769df0f17e558f3565bffb0c7dfb"),),
}

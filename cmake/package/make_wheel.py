"""Writes a wheel of the Python module and its library, which `pip install` takes (PEP 427).

  make_wheel.py --version V --machine M --readelf PROGRAM --readme FILE --out FOLDER
                SOURCE=PLACE ...

SOURCE becomes run_model/PLACE. It is for every release of Python 3, and on the machine M, as
`uname -m` names it, for systems that have what its libraries ask for (wheel_tag.py).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import time
import zipfile
from pathlib import Path

from wheel_tag import platform_tag


def metadata(version: str, readme: str) -> str:
    return (f"Metadata-Version: 2.1\nName: run_model\nVersion: {version}\n"
            "Summary: run models compiled with TVM, without TVM\nLicense: Apache-2.0\n"
            "Requires-Python: >=3.9\nRequires-Dist: numpy\n"
            f"Description-Content-Type: text/markdown\n\n{readme}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--readelf", required=True)
    parser.add_argument("--readme", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("files", nargs="+", metavar="SOURCE=PLACE")
    args = parser.parse_args()

    sources = {place: Path(source)
               for source, _, place in (text.rpartition("=") for text in args.files)}
    libraries = {place: source for place, source in sources.items() if ".so" in place}
    tag = f"py3-none-{platform_tag(args.readelf, args.machine, libraries)}"
    information = f"run_model-{args.version}.dist-info"
    contents = {f"run_model/{place}": source.read_bytes() for place, source in sources.items()}
    contents["run_model/py.typed"] = b""  # its annotations count (PEP 561)
    contents[f"{information}/METADATA"] = metadata(args.version, args.readme.read_text()).encode()
    contents[f"{information}/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: run_model\n"
                                        f"Root-Is-Purelib: false\nTag: {tag}\n").encode()
    record = f"{information}/RECORD"
    lines = [f"{record},,\n"]
    for place, data in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{place},sha256={digest},{len(data)}\n")
    contents[record] = "".join(lines).encode()

    # The same files make the same wheel; a ZIP's years begin with 1980.
    seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)
    args.out.mkdir(parents=True, exist_ok=True)
    wheel = args.out / f"run_model-{args.version}-{tag}.whl"
    unfinished = wheel.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, data in contents.items():
            entry = zipfile.ZipInfo(place, time.gmtime(seconds)[:6])
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    os.replace(unfinished, wheel)
    print(f"{wheel}  {wheel.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

"""How a peer is held to AVX2: by its own switch, or by libraries that see a CPU without AVX-512."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from peers.held.libraries import HERE, build_preload, copy_patched

#: The C library and NumPy choose by the CPU too, and copy a peer's memory.
COMMON = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,-AVX512DQ",
    "NPY_DISABLE_CPU_FEATURES":
        "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"}

#: Environment variables of peers that have a switch. ONNX Runtime, ncnn, MNN and LiteRT have none
#: in the pinned releases: MLAS, ncnn's and MNN's dispatch and XNNPACK ask the CPUID instruction.
SWITCHES = {"openvino": {"ONEDNN_MAX_CPU_ISA": "AVX2"}}
#: What a peer's package puts beside numpy and others in site-packages.
PACKAGES = {"onnxruntime": ("onnxruntime",), "ncnn": ("ncnn", "ncnn.libs"),
            "mnn": ("MNN", "mnn.libs", "_mnncengine*.so", "_tools*.so"),
            "litert": ("ai_edge_litert",)}


class CannotHold(Exception):
    """Why a peer runs as it likes."""


@dataclass(frozen=True)
class Hold:
    """how: for people. environment: of the peer's process."""

    how: str
    environment: dict[str, str] = field(default_factory=dict)


OURS = Hold("compiled for x86_64_v3", COMMON)


def hold(peer: str, site_packages: Path, version: str, work: Path) -> Hold:
    """Makes what is needed below `work` unless that has been done. Raises CannotHold."""
    if peer in SWITCHES:
        switch = SWITCHES[peer]
        return Hold("by " + ", ".join(f"{k}={v}" for k, v in switch.items()), COMMON | switch)
    if shutil.which("objdump") is None or shutil.which("gcc") is None:
        raise CannotHold("it has no switch, and objdump and gcc are not there to give it one")
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in
                                     ("libraries.py", "cpuid_without_avx512.c")))
    folder = work / f"{peer}-{version}-{digest.hexdigest()[:12]}"
    done = folder / "done.json"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        roots = [root for name in PACKAGES[peer] for root in sorted(site_packages.glob(name))]
        try:
            count = copy_patched(roots, folder)
            build_preload(folder)
        except (subprocess.CalledProcessError, OSError, ValueError) as error:
            raise CannotHold(f"its libraries cannot be changed: {error}") from None
        done.write_text(json.dumps({"instructions": count}), encoding="utf-8")
    count = json.loads(done.read_text(encoding="utf-8"))["instructions"]
    if count == 0:
        raise CannotHold("it has no switch, and its libraries no CPUID instruction")
    return Hold(f"has no switch: its {count} CPUID instructions answered without AVX-512",
                COMMON | {"LD_PRELOAD": str(folder / "cpuid_without_avx512.so"),
                          "PYTHONPATH": str(folder)})

"""The libraries of another architecture that cross-compiled programs and tests link.

A sysroot build/sysroot/<preset> holds Debian's own packages of the architecture, unpacked.  Where
this machine's release has none for it (riscv64 came after Debian 12), the libraries are built from
the release's source packages.  cmake/toolchains/<preset>.cmake looks into it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from run_model_tools.environment import BUILD_DIR, REPO_ROOT
from run_model_tools.errors import USAGE, ToolError
from run_model_tools.files import directory_in_the_making
from run_model_tools.progress import stage
from run_model_tools.setup.apt_sources import Source, host_sources
from run_model_tools.setup.private_apt import PrivateApt, run_tool

SYSROOTS = BUILD_DIR / "sysroot"
STAMP = ".made_from"

HEADER_PACKAGES = ("nlohmann-json3-dev", "libdlpack-dev", "libstb-dev", "libxxhash-dev")
# Debian's glog uses libunwind on x86 only.
LIBRARY_PACKAGES = ("zlib1g-dev", "libjpeg62-turbo-dev", "libgflags-dev", "libgoogle-glog-dev",
                    "libgtest-dev", "libgmock-dev",
                    # The shared ones, for librun_model.so (bindings/CMakeLists.txt).
                    "zlib1g", "libjpeg62-turbo")

# Built with CMake and these options, in the order to build them in: glog needs gflags.
CMAKE_PACKAGES = {
    "gflags": ("-DLIB_INSTALL_DIR={libdir}", "-DREGISTER_INSTALL_PREFIX=OFF",
               "-DREGISTER_BUILD_DIR=OFF"),
    "google-glog": ("-DWITH_UNWIND=OFF", "-DWITH_GTEST=OFF"),
    "libjpeg-turbo": ("-DENABLE_SHARED=OFF", "-DWITH_TURBOJPEG=OFF"),
    "googletest": ("-DBUILD_GMOCK=ON",),
}
# Built with its own configure: Debian leaves files out that its CMakeLists.txt asks for.
ZLIB = "zlib"

# Of the libraries a program takes only what it uses, as of its own code.
COMPILER_OPTIONS = "-O2 -fPIC -ffunction-sections -fdata-sections"


@dataclass(frozen=True)
class Sysroot:
    """What one preset's libraries are made of.

    debian: Debian's name of the architecture; triplet: that of its compiler and folders.
    from_source: the release has no packages of it.
    """

    preset: str
    debian: str
    triplet: str
    from_source: bool = False

    @property
    def folder(self) -> Path:
        return SYSROOTS / self.preset


ALL = {root.preset: root for root in (
    Sysroot("aarch64", "arm64", "aarch64-linux-gnu"),
    Sysroot("armhf", "armhf", "arm-linux-gnueabihf"),
    Sysroot("riscv64", "riscv64", "riscv64-linux-gnu", from_source=True))}


def is_made(root: Sysroot) -> bool:
    """Whether the folder was made by the recipe as it is now."""
    stamp = root.folder / STAMP
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == _recipe_hash(root)


def make(root: Sysroot) -> None:
    """Makes the folder anew; an older one is replaced only when the new one is complete.

    Raises ToolError (3) where a package cannot be had or a library does not build.
    """
    sources = host_sources(_codename())
    with directory_in_the_making(root.folder, _AllNames()) as making:
        with tempfile.TemporaryDirectory(dir=SYSROOTS, prefix=f".{root.preset}.work.") as work:
            if root.from_source:
                _add_headers(root, sources, making, Path(work))
                _add_built_libraries(root, sources, making, Path(work))
            else:
                _add_packages(root.debian, LIBRARY_PACKAGES + HEADER_PACKAGES, sources, making,
                              Path(work))
        (making / STAMP).write_text(_recipe_hash(root), encoding="utf-8")


class _AllNames(tuple):
    """Every file of the older folder is replaced."""

    def __contains__(self, name: object) -> bool:
        return True


def _codename() -> str:
    try:
        codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    except OSError:
        codename = ""
    if not codename or not Path("/usr/bin/apt-get").exists():
        raise ToolError(USAGE, (
            "this system is not a Debian release: unpack the libraries that "
            f"{Path(__file__).name} lists into {SYSROOTS}/<preset> by other means, and configure "
            "with -DRUN_MODEL_SYSROOT=<folder>."))
    return codename


def _recipe_hash(root: Sysroot) -> str:
    digest = hashlib.sha256(f"{root} {_codename()}".encode())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()


def _add_packages(architecture: str, packages: tuple[str, ...], sources: list[Source],
                  destination: Path, work: Path) -> None:
    """Unpacks Debian's packages of an architecture into `destination`."""
    with stage(f"downloading the libraries of {architecture}"):
        apt = PrivateApt(work / "apt", architecture, sources, "deb")
        (work / "debs").mkdir()
        for package in apt.download(packages, work / "debs"):
            run_tool("dpkg-deb", "-x", package, destination, folder=work,
                     hint="is the disk full?")


def _add_headers(root: Sysroot, sources: list[Source], destination: Path, work: Path) -> None:
    """Takes the libraries that are headers alone from this machine's own architecture."""
    host = _output("dpkg", "--print-architecture")
    host_triplet = _output("dpkg-architecture", "-qDEB_HOST_MULTIARCH")
    unpacked = work / "headers"
    _add_packages(host, HEADER_PACKAGES, sources, unpacked, work)
    (destination / "usr/lib").mkdir(parents=True)
    os.replace(unpacked / "usr/include", destination / "usr/include")
    os.replace(unpacked / "usr/share", destination / "usr/share")
    (destination / "usr/lib" / root.triplet / "cmake").mkdir(parents=True)
    os.replace(unpacked / "usr/lib" / host_triplet / "cmake/dlpack",
               destination / "usr/lib" / root.triplet / "cmake/dlpack")


def _add_built_libraries(root: Sysroot, sources: list[Source], destination: Path,
                         work: Path) -> None:
    """Builds Debian's source packages with the preset's compiler, as static libraries."""
    with stage(f"downloading the sources for {root.debian}"):
        apt = PrivateApt(work / "apt-src", _output("dpkg", "--print-architecture"), sources,
                         "deb-src")
        archives = work / "archives"
        archives.mkdir()
        apt.download_sources((ZLIB, *CMAKE_PACKAGES), archives)
    for name in (ZLIB, *CMAKE_PACKAGES):
        (description,) = archives.glob(f"{name}_*.dsc")
        # apt has compared the hashes with the archive's signed index.
        run_tool("dpkg-source", "--no-check", "-x", description, work / name, folder=work,
                 hint="is the disk full?")
    _build_zlib(root, work / ZLIB, destination)
    for name, options in CMAKE_PACKAGES.items():
        _build_with_cmake(root, work / name, options, destination)


def _build_zlib(root: Sysroot, source: Path, destination: Path) -> None:
    with stage(f"building zlib for {root.debian}"):
        tools = ("env", f"CHOST={root.triplet}", f"CFLAGS={COMPILER_OPTIONS}")
        run_tool(*tools, "./configure", "--static", "--prefix=/usr",
                 f"--libdir=/usr/lib/{root.triplet}", folder=source, hint=_build_hint(root))
        run_tool("make", f"-j{os.cpu_count()}", "libz.a", folder=source, hint=_build_hint(root))
        run_tool("make", "install", f"DESTDIR={destination}", folder=source,
                 hint=_build_hint(root))


def _build_with_cmake(root: Sysroot, source: Path, options: tuple[str, ...],
                      destination: Path) -> None:
    # Without a type CMake takes libdir for a path in this process's folder, where a package says
    # that it is a path.
    build, libdir, hint = source / "obj", f"lib/{root.triplet}", _build_hint(root)
    with stage(f"building {source.name} for {root.debian}"):
        run_tool("cmake", "-G", "Ninja", "-S", source, "-B", build,
                 f"-DCMAKE_TOOLCHAIN_FILE={REPO_ROOT}/cmake/toolchains/{root.preset}.cmake",
                 f"-DRUN_MODEL_SYSROOT={destination}", "-DCMAKE_INSTALL_PREFIX=/usr",
                 f"-DCMAKE_INSTALL_LIBDIR:STRING={libdir}", "-DCMAKE_BUILD_TYPE=None",
                 f"-DCMAKE_C_FLAGS={COMPILER_OPTIONS}", f"-DCMAKE_CXX_FLAGS={COMPILER_OPTIONS}",
                 "-DBUILD_SHARED_LIBS=OFF", "-DBUILD_TESTING=OFF",
                 *(option.format(libdir=libdir) for option in options), folder=build.parent,
                 hint=hint)
        run_tool("cmake", "--build", build, folder=source, hint=hint)
        run_tool("env", f"DESTDIR={destination}", "cmake", "--install", build, folder=source,
                 hint=hint)


def _build_hint(root: Sysroot) -> str:
    return f"see its message below; the compiler is that of Debian's package g++-{root.triplet}"


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

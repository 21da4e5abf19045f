"""Where packages of another architecture come from, and how the making of a sysroot fails."""

import os
import shutil
import subprocess

import pytest
from conftest import ROOT

from run_model_tools.errors import ToolError
from run_model_tools.setup import apt_sources, sysroot

ONE_LINE = """\
# deb http://old.example/debian bookworm main
deb [arch=amd64,i386 signed-by=/usr/share/keyrings/key.gpg] \
http://a.example/debian bookworm main non-free # c
deb-src http://a.example/debian bookworm main
deb cdrom:[Debian]/ bookworm main
  deb http://a.example/security bookworm-security/ main
deb http://vendor.example/apt stable main
deb http://vendor.example/apt bookworm stable
"""

STANZAS = """\
# The archive.
Types: deb deb-src
URIs: http://a.example/debian
  http://b.example/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Architectures: amd64
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://a.example/debian
Suites: bookworm
Components: main
"""


def test_one_line_entries_lose_the_architecture_and_keep_the_key():
    kept = apt_sources.of_release(apt_sources.parse_list(ONE_LINE), "bookworm")
    assert [(s.uris, s.suites, s.components) for s in kept] == [
        (("http://a.example/debian",), ("bookworm",), ("main",)),
        (("http://a.example/security",), ("bookworm-security/",), ("main",))]
    assert kept[0].fields == (("signed-by", "/usr/share/keyrings/key.gpg"),)
    assert kept[1].fields == ()


def test_stanzas_lose_the_architecture_and_keep_a_key_written_out():
    (kept,) = apt_sources.of_release(apt_sources.parse_stanzas(STANZAS), "bookworm")
    assert kept.uris == ("http://a.example/debian", "http://b.example/debian")
    assert kept.suites == ("bookworm", "bookworm-updates")
    text = kept.stanza("deb-src")
    assert text.startswith("Types: deb-src\nURIs: http://a.example/debian http://b.example/debian\n")
    assert "Architectures" not in text and "Components: main\n" in text
    assert text.endswith("Signed-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n"
                         " -----END PGP PUBLIC KEY BLOCK-----\n")


def test_both_kinds_of_files_are_read(tmp_path):
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text("deb http://one.example/debian bookworm main\n")
    (parts / "two.list").write_text("deb http://two.example/debian bookworm main\n")
    (parts / "three.sources").write_text(STANZAS)
    (parts / "four.list.disabled").write_text("deb http://four.example/debian bookworm main\n")
    found = apt_sources.host_sources("bookworm", tmp_path)
    assert [s.uris[0] for s in found] == [
        "http://one.example/debian", "http://two.example/debian", "http://a.example/debian"]


def test_a_machine_without_archives_of_its_release_is_named(tmp_path):
    (tmp_path / "sources.list").write_text("deb http://one.example/debian trixie main\n")
    with pytest.raises(ToolError) as failure:
        apt_sources.host_sources("bookworm", tmp_path)
    assert "'bookworm'" in str(failure.value) and str(tmp_path) in str(failure.value)
    assert failure.value.code == 3


@pytest.fixture
def copy_of_scripts(tmp_path):
    """Runs make_sysroot of a repository of its own, with an apt-get that does as told."""
    shutil.copytree(ROOT / "scripts", tmp_path / "repository/scripts")
    programs = tmp_path / "programs"
    programs.mkdir()

    def run(apt_body, *arguments):
        apt = programs / "apt-get"
        apt.write_text(f"#!/bin/bash\n{apt_body}\n")
        apt.chmod(0o755)
        return subprocess.run(
            [str(tmp_path / "repository/scripts/make_sysroot"), *arguments], text=True, check=False,
            capture_output=True, timeout=60,
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"})
    return run, tmp_path / "repository/build/sysroot"


needs_debian = pytest.mark.skipif(
    shutil.which("apt-get") is None, reason="this system has no apt")


@needs_debian
def test_a_failed_download_leaves_nothing_that_looks_finished(copy_of_scripts):
    run, folder = copy_of_scripts
    result = run('case "$*" in *update*) exit 0;; esac; echo "E: no such host"; exit 100',
                 "aarch64")
    assert result.returncode == 3 and result.stdout == ""
    assert "E: no such host" in result.stderr and "exit status 100" in result.stderr
    assert [p.name for p in folder.iterdir()] == [".aarch64.lock"]
    assert run("exit 0", "aarch64", "--check").returncode == 1


@needs_debian
def test_a_missing_index_is_named_with_the_package_that_it_costs(copy_of_scripts):
    run, _ = copy_of_scripts
    result = run('case "$*" in *update*) echo "E: index gone"; exit 100;; esac; '
                 'echo "E: no package"; exit 100', "armhf")
    assert result.returncode == 3
    assert "warning: apt could not read every index" in result.stderr
    assert "E: no package" in result.stderr and "E: index gone" in result.stderr


def test_an_unknown_preset_is_refused(copy_of_scripts):
    run, _ = copy_of_scripts
    result = run("exit 1", "mips")
    assert result.returncode == 2
    assert "'mips'" in result.stderr and "aarch64, armhf, riscv64" in result.stderr


def test_every_sysroot_has_a_toolchain_and_a_preset():
    presets = (ROOT / "CMakePresets.json").read_text()
    for root in sysroot.ALL.values():
        toolchain = (ROOT / f"cmake/toolchains/{root.preset}.cmake").read_text()
        assert f"set(triplet {root.triplet})" in toolchain
        assert f'"name": "{root.preset}"' in presets

"""Which commands are taken out of a page of instructions, and the board that they reach."""

import subprocess

import pytest
from conftest import ROOT

from run_model_tools.boards import instructions

PAGE = """# Title

## One: `one`

```sh
echo first
```

Text.

```console
echo never
```

    echo never either

### Deeper

```sh
echo second
```

## No name

```sh
echo outside
```

## Two: `two`

```sh
echo third
```
"""


def test_sections_end_at_headings_of_their_level():
    sections = instructions.read_sections(PAGE)
    assert sections == {"one": "echo first\necho second", "two": "echo third"}


def test_the_page_has_a_section_for_every_target():
    page = (ROOT / "TARGET_INSTRUCTIONS.md").read_text()
    named = set(instructions.read_sections(page))
    targets = set(instructions.emulators())
    # The other two levels of x86-64 are told of in x86_64_v3's section, other vectors of RISC-V in
    # spacemit_k1's.
    assert targets - named == {"x86_64_v2", "x86_64_v4", "riscv64_v"}


@pytest.mark.parametrize("target", ["native", "raspi4_aarch64"])
def test_files_are_copied_to_the_board_and_commands_run_there(tmp_path, target):
    scratch, files = tmp_path / "scratch", tmp_path / "files"
    scratch.mkdir()
    files.mkdir()
    (files / "a.txt").write_text("hello\n")
    env = instructions.board_environment(scratch, target)
    script = "scp a.txt user@board: && ssh user@board 'mkdir b && cp a.txt b && cat b/a.txt'"
    done = subprocess.run(["bash", "-c", script], cwd=files, env=env, capture_output=True,
                          text=True)
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert (scratch / "home" / "b" / "a.txt").exists() and not (files / "b").exists()


def test_a_failure_on_the_board_is_a_failure_here(tmp_path):
    env = instructions.board_environment(tmp_path, "native")
    done = subprocess.run(["bash", "-c", "ssh user@board 'exit 3'"], env=env)
    assert done.returncode == 3


def test_programs_of_another_machine_start_under_its_emulator(tmp_path):
    env = instructions.board_environment(tmp_path, "raspi4_aarch64")
    text = (tmp_path / "bin" / "ssh").read_text()
    assert "./run_model() { qemu-aarch64 -cpu cortex-a72" in text and env["PATH"].startswith(
        str(tmp_path / "bin"))

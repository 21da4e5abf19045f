"""Downloads Debian packages of any architecture without changing anything on this machine.

apt runs with lists, caches and a package database of its own in a folder that it is given; the
archives, their keys and the proxy are this machine's.  Neither root nor a foreign architecture in
dpkg is needed, and apt checks signatures and hashes as ever.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from run_model_tools.errors import MISSING_FILE, ToolError
from run_model_tools.setup.apt_sources import Source

# "#clear" undoes what this machine's configuration sets: commands to run after an update, and
# the other architectures that its dpkg knows.
_CONFIGURATION = """\
Dir::State "{folder}/state";
Dir::State::status "{folder}/state/status";
Dir::Cache "{folder}/cache";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{folder}/sources";
APT::Architecture "{architecture}";
#clear APT::Architectures;
APT::Architectures {{ "{architecture}"; }};
#clear APT::Default-Release;
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Update::Error-Mode "any";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
"""


class PrivateApt:
    """An apt of its own in `folder`, for one of Debian's architectures.

    kind: `deb` for packages, `deb-src` for their sources.
    """

    def __init__(self, folder: Path, architecture: str, sources: list[Source], kind: str) -> None:
        for name in ("state/lists/partial", "cache/archives/partial", "sources"):
            (folder / name).mkdir(parents=True)
        (folder / "state/status").touch()
        (folder / "sources/archives.sources").write_text(
            "\n".join(source.stanza(kind) for source in sources), encoding="utf-8")
        self._configuration = folder / "apt.conf"
        self._configuration.write_text(
            _CONFIGURATION.format(folder=folder, architecture=architecture), encoding="utf-8")
        try:
            self._run(folder, "update")
        except ToolError as error:
            # An archive in the middle of its own update may lack one index of many; whether a
            # package is missing for it shows when the packages are fetched.
            self._update_failure = f" Before that: {error}"
            sys.stderr.write("warning: apt could not read every index of this machine's archives "
                             f"for {architecture}; packages come from the others.\n")
        else:
            self._update_failure = ""

    def download(self, packages: Sequence[str], folder: Path) -> list[Path]:
        """Puts the newest version of each package into `folder`, and gives the .deb files."""
        self._fetch(folder, "download", *packages)
        return sorted(folder.glob("*.deb"))

    def download_sources(self, packages: Sequence[str], folder: Path) -> None:
        """Puts the files of each source package into `folder`."""
        self._fetch(folder, "source", "--download-only", *packages)

    def _fetch(self, folder: Path, *arguments: str) -> None:
        try:
            self._run(folder, *arguments)
        except ToolError as error:
            raise ToolError(error.code, f"{error}{self._update_failure}") from None

    def _run(self, folder: Path, *arguments: str) -> None:
        run_tool("apt-get", "-q", "-c", self._configuration, *arguments, folder=folder, hint=(
            "check the network and this machine's /etc/apt (does 'apt-get update' work?), then run "
            "this again"))


def run_tool(*command: object, folder: Path, hint: str) -> None:
    """Runs a program in `folder`; its output is shown only where it fails, in a ToolError (3)."""
    words = [str(word) for word in command]
    try:
        result = subprocess.run(words, cwd=folder, text=True, check=False, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        raise ToolError(MISSING_FILE, (
            f"the program {words[0]} was not found: run scripts/install_packages.sh.")) from None
    if result.returncode != 0:
        end = "\n".join(f"  | {line}" for line in result.stdout.strip().splitlines()[-20:])
        raise ToolError(MISSING_FILE, (
            f"'{' '.join(words[:4])} …' failed with exit status {result.returncode}: {hint}. "
            f"The end of its output:\n{end}\n"))

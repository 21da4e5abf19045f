"""The forms of an artifact besides model.so, model.json and model.params, below forms/.

    flat    forms/flat/NAME_tvm.{so,json,params}
    mod     forms/mod/mod.{so,json,params}, as tvmc unpacks its packages
    tar     forms/tar/NAME.tar, tvmc's package of these three
    single  forms/single/NAME.so, graph and parameters inside, as export_library of a whole model
    linked  forms/linked/model.{so,json}, the parameters inside the library's code
    mlf     forms/mlf/NAME.tar, Model Library Format (objects or sources that are yet to be linked)

They hold what TVM writes, to the byte where it has a say, and no metadata, for which none of these
forms has a place.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from run_model_tools.compiling import artifact
from run_model_tools.errors import USAGE, ToolError

ALL = ("flat", "mod", "tar", "single", "linked", "mlf")

# C source has no library of TVM's own making, and none at all before a compiler has seen it.
_OF_C_SOURCE = ("mlf",)
_OF_BUILT_C = ("flat", "mod", "tar", "mlf")


def parse(text: str | None) -> tuple[str, ...]:
    """"mod,tar" or "all" -> names of forms in the order of ALL; raises ToolError (2)."""
    if text is None:
        return ()
    names = [name.strip() for name in text.split(",")]
    # The triple is the artifact itself.
    unknown = [name for name in names if name not in (*ALL, "all", "triple")]
    if unknown:
        raise ToolError(USAGE, f"--forms names '{unknown[0]}': choose from {', '.join(ALL)}, all.")
    return tuple(name for name in ALL if name in names or "all" in names)


def possible(names: tuple[str, ...], c_source: bool, built: bool) -> tuple[str, ...]:
    """Those of the forms that a target has."""
    if not c_source:
        return names
    return tuple(name for name in names if name in (_OF_BUILT_C if built else _OF_C_SOURCE))


def paths(form: str, name: str) -> list[str]:
    """The files of a form, as seen from the artifact's folder."""
    stem = {"flat": f"{name}_tvm", "mod": "mod", "linked": "model"}.get(form, name)
    suffixes = {"flat": (".so", ".json", ".params"), "mod": (".so", ".json", ".params"),
                "single": (".so",), "linked": (".so", ".json")}.get(form, (".tar",))
    return [f"{artifact.FORMS}/{form}/{stem}{suffix}" for suffix in suffixes]


def arrange(folder: Path, names: tuple[str, ...], model: str) -> None:
    """Adds the forms that consist of the files in `folder`, whose parameters are TVM's own
    still."""
    pieces = [folder / piece for piece in (artifact.LIBRARY, artifact.GRAPH, artifact.PARAMS)]
    for form in ("flat", "mod"):
        if form in names:
            for source, path in zip(pieces, paths(form, model)):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, folder / path)
    if "tar" in names:
        package = folder / paths("tar", model)[0]
        package.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(package, "w") as archive:
            for piece in pieces:
                archive.add(piece, f"mod{piece.suffix}", filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.name.endswith(".so") else 0o644
    return member


def describe(folder: Path, names: tuple[str, ...], model: str) -> dict[str, dict]:
    """Entries for the metadata's list of files."""
    return {path: artifact.describe_file(folder / path)
            for form in names for path in paths(form, model)}


def present(metadata: dict | None) -> tuple[str, ...]:
    """The forms that an artifact's metadata lists."""
    files = (metadata or {}).get("files", {})
    listed = {path.split("/")[1] for path in files if path.startswith(artifact.FORMS + "/")}
    return tuple(name for name in ALL if name in listed)


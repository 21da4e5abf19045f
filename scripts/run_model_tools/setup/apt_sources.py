"""Where this machine gets its Debian packages from: /etc/apt's sources, in both of their forms.

The forms are those of sources.list(5): one-line entries in *.list, stanzas in *.sources.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from run_model_tools.errors import MISSING_FILE, ToolError

# Fields of a stanza that an entry has members of its own for, or that speak of this machine.
_OWN_FIELDS = {"types", "uris", "suites", "components", "enabled", "architectures", "targets",
               "languages"}
_OPTION_FIELDS = {"arch": "architectures", "lang": "languages", "target": "targets"}


@dataclass(frozen=True)
class Source:
    """One archive: where it is, which of its suites, and the other fields (keys) as written."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    fields: tuple[tuple[str, str], ...] = ()

    def stanza(self, kind: str) -> str:
        """The entry in the form of *.sources, for one kind: `deb` or `deb-src`.

        Of the archive's indexes only the one of packages is asked for.
        """
        target = {"deb": "Packages", "deb-src": "Sources"}[kind]
        lines = [f"Types: {kind}", f"URIs: {' '.join(self.uris)}",
                 f"Suites: {' '.join(self.suites)}", f"Components: {' '.join(self.components)}",
                 f"Targets: {target}", *(f"{name}: {value}" for name, value in self.fields)]
        return "\n".join(lines) + "\n"


def parse_list(text: str) -> list[Source]:
    """The `deb` entries of a *.list file."""
    entry = re.compile(r"deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)\s*([^#]*)")
    sources = []
    for line in text.splitlines():
        match = entry.match(line.strip())
        if match is None:
            continue
        options, uri, suite, components = match.groups()
        fields = []
        for option in (options or "").split():
            name, _, value = option.partition("=")
            name = _OPTION_FIELDS.get(name.lower().rstrip("+-"), name)
            if name.lower() not in _OWN_FIELDS:
                fields.append((name, value.replace(",", " ")))
        sources.append(Source((uri,), (suite,), tuple(components.split()), tuple(fields)))
    return sources


def parse_stanzas(text: str) -> list[Source]:
    """The enabled stanzas of a *.sources file that have the type `deb`."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    sources = []
    for block in re.split(r"\n(?:[ \t]*\n)+", "\n".join(lines)):
        fields: dict[str, tuple[str, str]] = {}
        name = ""
        for line in block.splitlines():
            if line[:1] in (" ", "\t") and name:  # a folded line, as of a key written out
                title, value = fields[name]
                fields[name] = (title, f"{value}\n{line}")
            elif ":" in line:
                title, _, value = line.partition(":")
                name = title.strip().lower()
                fields[name] = (title.strip(), value.strip())

        words = {field: tuple(value.split()) for field, (_, value) in fields.items()}
        if ("deb" not in words.get("types", ())
                or words.get("enabled", ())[:1] in (("no",), ("false",), ("0",))):
            continue
        others = tuple(pair for field, pair in fields.items() if field not in _OWN_FIELDS)
        sources.append(Source(words.get("uris", ()), words.get("suites", ()),
                              words.get("components", ()), others))
    return sources


def of_release(sources: list[Source], codename: str) -> list[Source]:
    """What of these is Debian's `main` for a release and its updates, for any architecture.

    Other archives, as a vendor adds them, need not have the packages of another architecture.
    """
    suites = {codename, f"{codename}-updates", f"{codename}-security", f"{codename}/updates"}
    kept = []
    for source in sources:
        of_codename = tuple(s for s in source.suites if s.rstrip("/") in suites)
        uris = tuple(u for u in source.uris if not u.startswith("cdrom:"))
        if of_codename and uris and "main" in source.components:
            kept.append(Source(uris, of_codename, ("main",), source.fields))
    return kept


def host_sources(codename: str, folder: Path = Path("/etc/apt")) -> list[Source]:
    """This machine's archives of Debian's release `codename`.

    Raises ToolError (3) where there is none.
    """
    found = []
    for path in [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*.list"))]:
        if path.is_file():
            found += parse_list(path.read_text(encoding="utf-8"))
    for path in sorted((folder / "sources.list.d").glob("*.sources")):
        found += parse_stanzas(path.read_text(encoding="utf-8"))
    kept = of_release(found, codename)
    if not kept:
        raise ToolError(MISSING_FILE, (
            f"{folder} names no archive with the component 'main' of Debian's release "
            f"'{codename}': add one to {folder}/sources.list or {folder}/sources.list.d."))
    return kept

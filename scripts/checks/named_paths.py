"""Holds the paths that documents and comments name to what is there.

Looked at are Markdown files, all of their text, and comments in sources. A link to a heading
(FILE.md#heading, #heading) needs that heading too. A path is taken for one
of this tree where its first folder is one, seen from the top or from beside the file that names it;
it has to exist from one of the two. What Git ignores (build/, compiled networks) is made, and need
not be there yet. Words in capitals stand for something else (artifacts/NAME/TARGET), patterns too,
and what would be the reader's own is called mine.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

# What begins a comment, by the ending or the name of the file.
COMMENTED = {".h": "//", ".cc": "//", ".c": "//", ".in": "//",
             ".py": "#", ".sh": "#", ".cmake": "#", "CMakeLists.txt": "#"}
# TVM's own tests, which the RPC server is run with.
FOREIGN = re.compile(r"tests/python|(\w+/)+test_\w+\.py")

PATH = re.compile(r"(?<![\w/.~$<>{}*=:-])\w[\w.-]*(?:/[\w.-]+)+(?![\w/]*[*{}<>$])")
SOURCE_NAME = re.compile(r"(?<![\w/.-])[\w-]+\.(?:h|cc|py|sh|cmake|c\.in)\b")
LINK = re.compile(r"\]\(([\w/-]*[/.][\w./-]*)(?:#[\w-]*)?\)")
HEADING = re.compile(r"^#+ (.*)", re.MULTILINE)
HEADING_LINK = re.compile(r"\]\(((?:[\w./-]*\.md)?)#([\w-]+)\)")
INSTALLED_HEADER = re.compile(r"<(run_model/[\w/]+\.h)>")
URL = re.compile(r"https?://\S+|github\.com/\S+")
PLACEHOLDER = re.compile(r"(?:^|[/_.-])(?:[A-Z][A-Z_]*|mine)(?=$|[/_.-])")


class Tree:
    """Files and folders, as paths below the top."""

    def __init__(self, root: Path, files: list[str]) -> None:
        self.root = root
        self.files = files
        self.paths = {folder for file in files for folder in self.folders(file)} | set(files)
        self.names = {os.path.basename(file) for file in files}
        self.installed = {file.split("/include/", 1)[1] for file in files if "/include/" in file}

    @staticmethod
    def folders(file: str) -> list[str]:
        parts = file.split("/")[:-1]
        return ["/".join(parts[:count + 1]) for count in range(len(parts))]

    def seen_from(self, file: str, path: str) -> list[str]:
        """What `path` may mean in `file`: from the top, and from beside it."""
        beside = os.path.normpath(os.path.join(os.path.dirname(file), path))
        return [path, beside]

    def has(self, file: str, path: str) -> bool:
        return any(place in self.paths for place in self.seen_from(file, path))

    def has_heading(self, file: str, document: str, anchor: str) -> bool:
        """Whether `document`, as `file` names it ("" is itself), has a heading that GitHub gives
        this anchor: lower case, hyphens for spaces, no other punctuation."""
        places = self.seen_from(file, document) if document else [file]
        headings = [heading for place in places if place in self.paths
                    for heading in HEADING.findall((self.root / place).read_text("utf-8"))]
        return anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
                          for heading in headings}

    def is_ours(self, file: str, path: str) -> bool:
        """Whether the path begins with a folder of this tree, rather than of somebody else's."""
        return any(place in self.paths for place in self.seen_from(file, path.split("/")[0]))


def texts(file: str, text: str) -> list[tuple[int, str]]:
    """What of a file is prose, with the number of each line."""
    lines = list(enumerate(text.splitlines(), 1))
    if file.endswith(".md"):
        return lines
    mark = COMMENTED.get(os.path.basename(file), COMMENTED.get(os.path.splitext(file)[1]))
    if mark is None:
        return []
    comment = re.compile(rf"(?:^|\s){mark}\s(.*)")
    return [(number, match[1])
            for number, line in lines for match in [comment.search(line)] if match]


def named(file: str, line: str, tree: Tree) -> list[str]:
    """The paths of this tree that a line names and that are not there."""
    missing = [f"<{header}>" for header in INSTALLED_HEADER.findall(line)
               if header not in tree.installed and not PLACEHOLDER.search(header)]
    line = URL.sub(" ", line)
    missing += [link for link in LINK.findall(line) if not tree.has(file, link.rstrip("/"))]
    missing += [f"{document}#{anchor}" for document, anchor in HEADING_LINK.findall(line)
                if (not document or tree.has(file, document))
                and not tree.has_heading(file, document, anchor)]
    for path in PATH.findall(LINK.sub(" ", line)):
        path = path.rstrip(".-")
        if (tree.is_ours(file, path) and not tree.has(file, path) and not PLACEHOLDER.search(path)
                and not FOREIGN.fullmatch(path)):
            missing.append(path)
    if file.endswith(".md"):
        missing += [name for name in SOURCE_NAME.findall(line)
                    if name not in tree.names and not PLACEHOLDER.search(name)
                    and not name.startswith("test_")]
    return missing


def ignored(root: Path, paths: list[str]) -> set[str]:
    """Those of `paths` that Git ignores."""
    result = subprocess.run(["git", "check-ignore", "--stdin"], input="\n".join(paths), cwd=root,
                            capture_output=True, text=True, check=False)
    return set(result.stdout.split("\n"))


def problems(root: Path, files: list[str]) -> list[str]:
    """Paths that `files` (paths below `root`) name in vain, a line for each."""
    tree = Tree(root, files)
    found = []
    for file in files:
        if not file.endswith(".md") and not texts(file, "// a\n# a"):
            continue
        text = (root / file).read_text(encoding="utf-8", errors="replace")
        found += [(file, number, path) for number, line in texts(file, text)
                  for path in named(file, line, tree)]
    made = ignored(root, [place for file, _, path in found for place in tree.seen_from(file, path)
                          if not place.startswith("..")])
    return [f"{file}:{number}: there is no {path}" for file, number, path in found
            if not made.intersection(tree.seen_from(file, path))]

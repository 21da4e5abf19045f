"""Names that files compiled together define alike."""

from pathlib import Path

import pytest

from checks import local_names


def found(tmp_path: Path, files: dict[str, str]) -> list[str]:
    for name, body in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"namespace run_model {{\nnamespace {{\n\n{body}\n}}  // namespace\n"
                        "int shown() { return 1; }\n}  // namespace run_model\n")
    return local_names.problems(tmp_path, files)


@pytest.mark.parametrize("one, other, name", [
    ("constexpr std::size_t kMost = 3;", "constexpr int kMost = 4;", "kMost"),
    ("void fail(const char* text) {}", "[[noreturn]] void fail(\n    int code) {}", "fail"),
    ("struct Source {};", "enum class Source { kFile };", "Source"),
    ("const std::vector<std::pair<int, int>>& pairs() {}", "int pairs = 0;", "pairs"),
])
def test_the_same_name_in_two_files(tmp_path, one, other, name):
    problem, = found(tmp_path, {"rpc/a.cc": one, "rpc/server/b.cc": other})
    assert problem.startswith(f"{name} is defined in rpc/a.cc and in rpc/server/b.cc: ")


def test_what_is_no_clash(tmp_path):
    assert found(tmp_path, {
        "rpc/a.cc": "using Clock = std::chrono::steady_clock;\nint one() {\n  int same = 1;\n}\n",
        "rpc/b.cc": "using Clock = std::chrono::steady_clock;\nint two() {\n  int same = 1;\n}\n",
        "base/c.cc": "int one() { return 1; }\n",
        "rpc/d.h": "int one() { return 1; }\n"}) == []

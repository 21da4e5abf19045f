// Whether a file of an artifact is what its name says.
#pragma once

#include <filesystem>
#include <string>

namespace run_model {

enum class PieceKind { kLibrary, kGraph, kParams };

// Throws Error(kFormat) saying what the file is instead when it does not begin as a piece of that
// kind does, Error(kFile) when it cannot be read. `hint` says what to do; empty:
// what fits the finding.
void check_piece_kind(const std::filesystem::path& path, PieceKind wanted, std::string hint = "");

// Whether the file is a tar archive, as tvmc packs its models, or a gzip file, which may be one.
// Throws Error(kFile).
bool is_tar_archive(const std::filesystem::path& path);

}  // namespace run_model

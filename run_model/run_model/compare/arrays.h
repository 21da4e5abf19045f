// Compares two files of arrays.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace run_model {

enum class ArrayVerdict {
  kEqual,        // bit by bit
  kWithin,       // the tolerance
  kBeyond,       // the tolerance, in at least one element
  kAnotherForm,  // of another shape or element type
  kOnlyInFirst,
  kOnlyInSecond,
};

// "equal", "within tolerance", "beyond tolerance", "another form", "only in the first" …
std::string_view array_verdict_name(ArrayVerdict verdict);

bool is_difference(ArrayVerdict verdict);

struct ArrayComparison {
  std::string name;
  std::string first_form;  // "float32 [1, 1000]"; empty where the array is not there
  std::string second_form;
  ArrayVerdict verdict = ArrayVerdict::kEqual;
  // Of elements that are both finite.
  double max_absolute = 0.0;  // |second - first|
  double max_relative = 0.0;  // |second - first| / |first|, where first is not 0
  std::size_t elements = 0;
  std::size_t beyond = 0;      // elements beyond the tolerance
  std::size_t not_finite = 0;  // elements that are NaN or infinite on either side
};

// Elements agree if |second - first| <= atol + rtol * |first|, as numpy.allclose(second, first) has
// it; one that is NaN or infinite agrees with nothing. Arrays are paired by their names; those of
// .npy files have the name "array". In the first file's order, then what only the second one has.
// Throws as read_npz and read_npy do.
std::vector<ArrayComparison> compare_array_files(const std::filesystem::path& first,
                                                 const std::filesystem::path& second, double atol,
                                                 double rtol);

}  // namespace run_model

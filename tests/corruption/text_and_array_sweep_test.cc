// Labels and NumPy files.
#include <gtest/gtest.h>

#include <run_model/labels.h>
#include <run_model/npy.h>
#include <run_model/npz.h>
#include "tests/corruption/damage.h"
#include "tests/corruption/sweep.h"
#include "tests/temporary_folder.h"

namespace run_model::corruption {
namespace {

std::string numpy_file(const std::string& name) {
  return TemporaryFolder::read(RUN_MODEL_SOURCE_DIR "/tests/artifacts/data/" + name);
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && same_dtype(a.dtype(), b.dtype()) &&
         std::equal(static_cast<const char*>(a.data()),
                    static_cast<const char*>(a.data()) + a.nbytes(),
                    static_cast<const char*>(b.data()));
}

TEST(LabelSweep, EveryByte) {
  Sweep sweep({ErrorKind::kFormat}, "labels.txt");
  for_each_damage("tabby\nbaguette, French loaf\nça va \xf0\x9f\x90\x88\n",
                  [&](const std::string& how, const std::string& text) {
                    sweep.accepts(how, [&] { parse_labels(text, "'labels.txt'"); });
                  });
}

// The bytes of an array can be anything; its form has to come from the file's own words.
TEST(NpySweep, EveryByte) {
  for (const char* name : {"float32.npy", "float64_fortran.npy", "bool.npy", "int64.npy",
                           "scalar.npy", "version2.npy", "version3.npy"}) {
    SCOPED_TRACE(name);
    Sweep sweep({ErrorKind::kFormat}, "x.npy");
    for_each_damage(numpy_file(name), [&](const std::string& how, const std::string& bytes) {
      sweep.accepts(how, [&] {
        Tensor tensor = parse_npy(std::as_bytes(std::span(bytes)), "'x.npy'");
        EXPECT_LT(tensor.nbytes(), bytes.size()) << how;
      });
    });
  }
}

// An archive has a checksum for each member: what is accepted must have lost nothing.
TEST(NpzSweep, EveryByte) {
  TemporaryFolder folder;
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    SCOPED_TRACE(name);
    std::string content = numpy_file(name);
    std::vector<NamedTensor> original = read_npz(folder.write("x.npz", content));
    Sweep sweep({ErrorKind::kFormat}, "x.npz");
    for_each_damage(content, [&](const std::string& how, const std::string& bytes) {
      replace_file(folder / "x.npz", bytes);
      sweep.accepts(how, [&] {
        std::vector<NamedTensor> read = read_npz(folder / "x.npz");
        ASSERT_EQ(read.size(), original.size()) << how;
        for (std::size_t i = 0; i < read.size(); ++i) {
          EXPECT_EQ(read[i].name, original[i].name) << how;
          EXPECT_TRUE(same(read[i].tensor, original[i].tensor)) << how << ": " << read[i].name;
        }
      });
    });
  }
}

}  // namespace
}  // namespace run_model::corruption

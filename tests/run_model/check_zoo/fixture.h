// A zoo of one small network, with its golden case, for tests of check_zoo.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/run_model/spawn.h"
#include "tests/temporary_folder.h"

namespace run_model {

// zoo/net/native/model.{so,json,params}, golden/net/red.{json,npy}, the picture
// red.ppm and zoo/tolerances.json. The network is picture_artifact.h's: three sums over 4 x 4
// pixels.
class SmallZoo {
 public:
  SmallZoo();

  const TemporaryFolder& folder() const { return folder_; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Makes the artifact call another function of its library.
  void call(const std::string& function) const;

  // The golden case as it is right, and writing it.
  static nlohmann::json golden();
  void write_golden(const std::string& picture, const nlohmann::json& golden,
                    const std::vector<float>& scores = kScores) const;

  void write_metadata(const nlohmann::json& metadata) const;

  // Runs check_zoo on this zoo.
  ProgramResult check(const std::vector<std::string>& flags) const;

  // The only case of check --json.
  nlohmann::json check_one(const std::vector<std::string>& flags, int exit_code) const;

  static inline const std::vector<float> kScores{2.0F, 0.1F, 0.2F};

 private:
  TemporaryFolder folder_;
};

}  // namespace run_model

// Writes the fuzzer's first inputs into the folder that is its argument.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/rpc/fuzz/seeds.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_session_seeds FOLDER\n";
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  int number = 0;
  for (const std::string& seed : run_model::rpc::session_seeds()) {
    std::ofstream file(std::filesystem::path(argv[1]) / ("seed" + std::to_string(number++)),
                       std::ios::binary);
    file << seed;
    if (!file.flush()) {
      std::cerr << "cannot write into " << argv[1] << "\n";
      return 3;
    }
  }
}

// write_documents: writes what is laid out from the tables of the programs' flags. It runs on the
// machine that builds, whatever machine the programs are for.
//   write_documents man|bash PROGRAM > FILE
#include <cstdio>
#include <string>
#include <string_view>

#include "run_model/check_zoo/flags.h"
#include "run_model/documents/documents.h"
#include "run_model/rpc_server/flags.h"
#include "run_model/run_model/flags.h"

int main(int argc, char** argv) {
  using run_model::Manual;
  for (const Manual* manual :
       {&run_model::kRunManual, &run_model::kCheckManual, &run_model::kServerManual}) {
    if (argc != 3 || std::string_view(argv[2]) != manual->program) continue;
    const std::string_view what = argv[1];
    if (what != "man" && what != "bash") break;
    const std::string text =
        what == "man" ? run_model::man_page(*manual) : run_model::bash_completion(*manual);
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    return written && std::fflush(stdout) == 0 ? 0 : 1;
  }
  std::fprintf(stderr, "usage: write_documents man|bash run_model|check_zoo|rpc_server\n");
  return 2;
}

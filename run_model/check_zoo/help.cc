#include "run_model/check_zoo/help.h"

#include "run_model/shared/failure_report.h"

namespace run_model {
namespace {

constexpr char kBeforeExitCodes[] =
    R"(check_zoo runs compiled networks on pictures and compares what they give with golden cases.

Usage:
  check_zoo [flags]

A case passes when the artifact was compiled from the ONNX file of the golden case and for its
preprocessing (where metadata.json tells), the picture is the case's, the network's input is equal
bit for bit (lossless pictures), no score is NaN or infinite, the best class and the best five as a
set are the reference's, only close neighbours among them change places, and every score is within
atol + rtol * |reference| by tolerances.json. Each artifact is run in a process of its own, under
an emulator where it is for another machine. What cannot be checked is skipped and named.

What to check:
  --artifacts DIR      the zoo, a folder with MODEL/TARGET/model.so (default: artifacts)
  --models A,B         these models (default: all that have golden cases)
  --target T,U         these targets (default: those that some model is compiled for; all: every one)
  --forms F,G          forms of artifacts: triple (default), flat, mod, tar, single, linked, mlf, all
  --pictures P,Q       these pictures (default: all that have golden cases)
  --shard I/N          every N-th artifact from the I-th on, to share the work between machines

What to check against:
  --golden DIR,DIR2    folders with MODEL/PICTURE.json and .npy
                       (default: golden in the zoo's folder, and build/zoo/golden)
  --images DIR         the pictures (default: images)
  --tolerances FILE    default: tolerances.json in the zoo's folder, or in artifacts
  --labels FILE        names of the classes for reports (default: labels/imagenet.txt, if there)

How to run:
  --jobs N             artifacts at a time (default: one for each CPU)
  --threads N          threads of each (default: 1)
  --timeout S          seconds that a picture may take (default: 120; ten times that when emulated)
  --programs DIR       where PRESET/bin/check_zoo is for targets of other machines
                       (default: three folders above this program, as in build/host/bin)
  --targets FILE       a list of targets other than the built-in one

When a case fails:
  --locate             run it node by node against the reference's intermediate tensors and name the
                       first node that departs; with a single picture also when it passes
  --intermediates DIR  folder with MODEL/PICTURE.npz (default: build/zoo/intermediates;
                       scripts/make_golden --intermediates makes them)

Output:
  --verbose            a row for every picture
  --json               one JSON object on standard output instead of the table, also for errors
  --junit FILE         a JUnit XML report besides
  --allow-skip         exit with 77 when nothing could be checked, instead of an error, also for
                       models that are nowhere to be found
  --help, --version    this text, the version; --helpfull lists glog's flags too

The table: pictures passed of those run; best class and best five equal; the largest error of any
score for lossless pictures, and for lossy ones; the largest share of its tolerance that an error is
(100% is the limit); mean time of a run.

Exit codes:
  0  every case that could be run has passed
)";

constexpr char kAfterExitCodes[] = R"(  77 nothing could be checked, with --allow-skip

Examples:
  check_zoo
  check_zoo --models=resnet18,mobilenet_v2 --target=raspi4_aarch64 --verbose
  check_zoo --forms=all --jobs=4 --junit=zoo.xml
  check_zoo --models=squeezenet1_1 --target=native --pictures=chelsea --locate
)";

}  // namespace

std::string check_zoo_help_text() {
  return std::string(kBeforeExitCodes) + exit_codes_text(ErrorKind::kImage) + "  " +
         std::to_string(exit_code(ErrorKind::kModel)) + "  some cases have failed\n" +
         kAfterExitCodes;
}

std::string check_zoo_version_text() {
  return std::string("check_zoo ") + RUN_MODEL_VERSION + "\n";
}

}  // namespace run_model

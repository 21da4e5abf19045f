#include "run_model/check_zoo/flags.h"

namespace run_model {

constinit CheckFlags check_flags;

namespace {

constexpr CheckFlags& f = check_flags;

constexpr Entry kUsages[] = {{.name = "[flags]"}};

constexpr Flag kWhatFlags[] = {
    {.name = "artifacts",
     .storage = &f.artifacts,
     .value = "DIR",
     .standard = "artifacts",
     .words = "the zoo, a folder with MODEL/TARGET/model.so (default: {})",
     .kind = ValueKind::kFolder},
    {.name = "models",
     .storage = &f.models,
     .value = "A,B",
     .words = "these models (default: all that have golden cases)"},
    {.name = "target",
     .storage = &f.target,
     .value = "T,U",
     .words = "these targets (default: those that some model is compiled for; all: every one)"},
    {.name = "forms",
     .storage = &f.forms,
     .value = "F,G",
     .standard = "triple",
     .words = "forms of artifacts: {} (default), flat, mod, tar, single, linked, mlf, all",
     .choices = "triple flat mod tar single linked mlf all",
     .list = true},
    {.name = "pictures",
     .storage = &f.pictures,
     .value = "P,Q",
     .words = "these pictures (default: all that have golden cases)"},
    {.name = "shard",
     .storage = &f.shard,
     .value = "I/N",
     .words = "every N-th artifact from the I-th on, to share the work between machines"},
};

constexpr Flag kReferenceFlags[] = {
    {.name = "golden",
     .storage = &f.golden,
     .value = "DIR,DIR2",
     .words = "folders with MODEL/PICTURE.json and .npy (default: golden in the zoo's folder, and "
              "build/zoo/golden)",
     .list = true,
     .kind = ValueKind::kFolder},
    {.name = "images",
     .storage = &f.images,
     .value = "DIR",
     .standard = "images",
     .words = "the pictures (default: {})",
     .kind = ValueKind::kFolder},
    {.name = "tolerances",
     .storage = &f.tolerances,
     .value = "FILE",
     .words = "the allowed differences (default: tolerances.json in the zoo's folder, or in "
              "artifacts, or as installed)",
     .kind = ValueKind::kFile},
    {.name = "labels",
     .storage = &f.labels,
     .value = "FILE",
     .words = "names of the classes for reports (default: labels/imagenet.txt, if there)",
     .kind = ValueKind::kFile},
};

constexpr Flag kRunFlags[] = {
    {.name = "jobs",
     .storage = &f.jobs,
     .value = "N",
     .words = "artifacts at a time (default: one for each CPU)"},
    {.name = "threads",
     .storage = &f.threads,
     .value = "N",
     .standard = "1",
     .words = "threads of each (default: {})"},
    {.name = "timeout",
     .storage = &f.timeout,
     .value = "S",
     .standard = "120",
     .words =
         "seconds that a picture may take (default: {}; ten times that on emulators and GPUs)"},
    {.name = "programs",
     .storage = &f.programs,
     .value = "DIR",
     .words = "where PRESET/bin/check_zoo is for targets of other machines (default: three folders "
              "above this program, as in build/host/bin)",
     .kind = ValueKind::kFolder},
    {.name = "targets",
     .storage = &f.targets,
     .value = "FILE",
     .words = "a list of targets other than the built-in one",
     .kind = ValueKind::kFile},
    {.name = "worker", .storage = &f.worker},  // by which check_zoo starts itself
};

constexpr Flag kFailureFlags[] = {
    {.name = "locate",
     .storage = &f.locate,
     .words = "run it node by node against the reference's intermediate tensors and name the first "
              "node that departs; with a single picture also when it passes"},
    {.name = "intermediates",
     .storage = &f.intermediates,
     .value = "DIR",
     .standard = "build/zoo/intermediates",
     .words = "folder with MODEL/PICTURE.npz (default: {}; scripts/make_golden --intermediates "
              "makes them)",
     .kind = ValueKind::kFolder},
};

constexpr Flag kOutputFlags[] = {
    {.name = "verbose", .storage = &f.verbose, .words = "a row for every picture"},
    {.name = "json",
     .storage = &f.json,
     .words = "one JSON object on standard output instead of the table, also for errors"},
    {.name = "junit",
     .storage = &f.junit,
     .value = "FILE",
     .words = "a JUnit XML report besides",
     .kind = ValueKind::kFile},
    {.name = "allow_skip",
     .storage = &f.allow_skip,
     .words = "exit with 77 when nothing could be checked, instead of an error, also for models "
              "that are nowhere to be found"},
    {.name = "help", .words = "this text; --helpfull lists glog's flags too", .aliases = "h"},
    {.name = "helpfull"},
    {.name = "version", .words = "the version"},
};

constexpr FlagGroup kGroups[] = {
    {.heading = "What to check", .flags = kWhatFlags},
    {.heading = "What to check against", .flags = kReferenceFlags},
    {.heading = "How to run", .flags = kRunFlags},
    {.heading = "When a case fails", .flags = kFailureFlags},
    {.heading = "Output", .flags = kOutputFlags},
};

constexpr Entry kTopics[] = {
    {.name = "The table",
     .words =
         R"(pictures passed of those run; best class and best five equal; the largest error of any
score; the largest share of its tolerance that an error is (100% is the limit); mean time of a run.)"},
};

constexpr ExitCode kExitCodes[] = {{8, "some cases have failed"},
                                   {77, "nothing could be checked, with --allow-skip"}};

constexpr Entry kFiles[] = {
    {.name = "share/run_model/tolerances.json",
     .words = "The allowed differences for each target, beside the folder of the program."},
};

constexpr Entry kExamples[] = {
    {.name = "check_zoo", .words = "Check all that is compiled:"},
    {.name = "check_zoo --models=resnet18,mobilenet_v2 --target=raspi4_aarch64 --verbose",
     .words = "Two networks as a Raspberry Pi 4 runs them, picture by picture:"},
    {.name = "check_zoo --forms=all --jobs=4 --junit=zoo.xml",
     .words = "Every form of artifact, with a report for a build server:"},
    {.name = "check_zoo --models=squeezenet1_1 --target=native --pictures=chelsea --locate",
     .words = "Where does one network depart from the reference?"},
};

}  // namespace

constexpr Manual kCheckManual{
    .program = "check_zoo",
    .summary = "compare compiled networks with reference results",
    .description =
        R"(check_zoo runs compiled networks on pictures and compares what they give with golden cases:
with what ONNX Runtime or LiteRT gives for the network before it was compiled.

A case passes when the artifact was compiled from the ONNX file of the golden case and for its
preprocessing (where metadata.json tells), the picture is the case's, the network's input is equal bit
for bit, no score is NaN or infinite, the best class and the best five as a set are
the reference's, only close neighbours among them change places, and every score is within
atol + rtol * |reference| by tolerances.json. Of networks with tasks, the same boxes, masks and points
have to be found, as near to the reference's as tolerances.json says. Each artifact is run in a process of its own, under an
emulator where it is for another machine. What cannot be checked is skipped and named.)",
    .more = "An artifact that crashes is a failed case and not the end.",
    .usages = kUsages,
    .groups = kGroups,
    .topics = kTopics,
    .success = "every case that could be run has passed",
    .last_error = ErrorKind::kImage,
    .exit_codes = kExitCodes,
    .files = kFiles,
    .examples = kExamples,
    .see_also = "run_model rpc_server",
};

}  // namespace run_model

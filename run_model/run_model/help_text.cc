#include "run_model/run_model/help_text.h"

#include "run_model/run_model/compare/compare.h"
#include "run_model/shared/failure_report.h"

namespace run_model {
namespace {

constexpr char kBeforeExitCodes[] =
    R"(run_model runs a model that TVM (0.6 to 0.19, graph executor) has compiled, without TVM.

Usage:
  run_model NAME ARTIFACTS IMAGE LABELS [INPUT] [flags]      classify a picture
  run_model NAME ARTIFACTS --inputs IN.npz --outputs OUT.npz run on tensors
  run_model NAME ARTIFACTS --fill-mode random --print-time   measure, without a picture
  run_model --inspect [NAME] ARTIFACTS                       show what an artifact is
  run_model --compare FIRST SECOND                           compare two results

  NAME       the model's name, as in ARTIFACTS/NAME/<target>/model.so
  ARTIFACTS  a folder of artifacts, a library (.so), the start of flat file names, or an archive:
             DIR/NAME/<target>/{model,mod}.{so,json,params}, DIR/NAME_tvm.{so,json,params},
             one .so that holds graph and parameters too, or a package of tvmc (.tar, .tar.gz)
  IMAGE      a picture: PNG, JPEG, BMP, GIF (first frame), PNM, PSD or TGA
  LABELS     a text file with one class name a line; an installed run_model brings imagenet.txt
  INPUT      the model's input for the picture, where it has several

How pixels become numbers, where the artifact's metadata.json does not say (flags come first):
  --normalize          divide by 255, then ImageNet's mean and deviation
  --no-normalize       keep 0 to 255, mean 0, deviation 1
  --mean A B C         subtract these (also --mean=A,B,C)
  --std A B C          and divide by these; both in the order of the network's channels, so that
                       --bgr --no-normalize --mean 104 117 123 takes 104 from blue, as Caffe does
  --mean-order=rgb     --mean and --std are in the order red, green, blue whatever the network's is
  --rgb, --bgr         order of the network's channels (default: RGB)
  --resizer NAME       nearest, pil-bilinear (default), pil-bicubic (Pillow up to 12),
                       pil13-bilinear, pil13-bicubic (Pillow 13) or cv2-linear
  --fit NAME           crop (default): short side to --resize, then the middle;
                       squash: both sides to the input's; letterbox: all of it, padded
  --resize N           length of the short side (default: 256 for a crop of 224)
  --crop N             side of the crop; must be the network's input size
  --layout NAME        NCHW or NHWC (default: by the input's shape)

Tensors:
  -i, --inputs FILE    .npz with an array of each input's name; .npy for a model with one input
  -o, --outputs FILE   write the outputs to this .npz as output_0, output_1 …; also --save-outputs
  --save-inputs FILE   write the inputs to this .npz by their names
  --fill-mode NAME     fill inputs that nothing else gives with zeros, ones or random values: floats
                       from 0 to 1, bytes of any value, 0 or 1 for wider integers
  --seed N             other random values (default: 0); the same on every machine
  --dump-input FILE    write the preprocessed picture to this .npy

Artifact and run:
  --target NAME        which target's folder (default: native if this CPU runs it, else the one
                       that makes the most of this CPU)
  --no-verify          do not compare the files with the checksums in metadata.json
  --no-plan-memory     lay tensors out as the compiler did, and run every node, also concatenations
                       that the runtime would otherwise write in place
  --inspect            show machine, ABI, inputs, outputs and metadata without loading any code

Threads:
  --threads N          default: TVM_NUM_THREADS, or one for each physical core at hand, but no more
                       than the cgroup's quota of CPU time allows
  --cluster NAME       on a machine with several kinds of cores: little (the weakest), prime (the
                       strongest), middle (those between), big (all but little) or all. Default:
                       big, if little cores are much weaker and no more threads are asked for
  --cpus LIST          run on these CPUs only, as in 0,2-3
  --spin N             microseconds that an idle thread waits before it sleeps (default: 100)
  --sweep threads      measure every sensible setting of these flags by turns, and recommend one

Time (each of these has the run repeated; statistics and progress are in milliseconds):
  --print-time         show min, median, mean, p90, p95, p99, max and standard deviation
  --repeat N           take N samples (default: 100, or what fits into 10 seconds)
  --number N           a sample is the mean of N runs (default: 1)
  --warmup N           runs before the first sample (default: 3)
  --warmup-seconds S   warm up for at least S seconds as well
  --min-seconds S      go on beyond --repeat until S seconds are over
  --max-seconds S      stop after S seconds, be --repeat reached or not
  --until-ci P%        stop as soon as the 95 % interval of the median is at most P % of it wide,
                       after 60 seconds (or --max-seconds) in any case
  --cold-cache         before each run, empty the CPU's caches of the model
  --fps N              start N runs a second and sleep in between, as with a camera; runs that take
                       too long make starts be missed, which are counted
  --times FILE         write every sample to this text file, one a line

Memory:
  --print-memory       the process's memory, as the kernel counts it, at these stages:
                         start             before the artifact is opened
                         loaded            library, graph and parameters are opened and checked
                         parameters bound  the model is ready to run
                         first run         after it
                         steady            after all repeated runs (without any, after two more)
                         peak              the most there ever was, also between stages
                       resident: in memory now; of this, anonymous: heap, stacks and what was
                       written, file-backed: pages of files, which the system can drop and read
                       again, and shared memory. PSS: resident, but a page that n processes use
                       counts 1/n. swapped: moved out. Then what the runtime asked for itself:
                       parameters used in place in their file or copied, activations (inputs,
                       outputs and everything between) and workspaces (scratch of functions)

Profile (node by node; as often as --repeat, --warmup and --max-seconds say):
  --profile            show for each node p50 and p95 of its time, its share, GFLOP/s where the
                       operations are known, GB/s, its first output and its function; then the sum
                       over operator families, and how much memory is needed at which node
  --profile-sort NAME  time (default) or order, in which the nodes run
  --profile-top N      show only the first N rows
  --profile-html FILE  write a page that draws it: time by node and family, memory, sortable table
  --profile-csv FILE, --profile-json FILE
                       write all there is of every node
  --profile-trace FILE write the fastest run for Perfetto or chrome://tracing

Compare (what --json has printed of repeated runs, or .npz or .npy files):
  --compare            of times, the ratio with its 95 % interval, and whether the second is faster,
                       slower, or neither; of arrays, the largest differences
  --noise P%           a smaller difference in time is none (default: 2%)
  --atol X, --rtol X   arrays agree within atol + rtol * |first| (default: 1e-8, 1e-5)

Output:
  --topk N             number of classes to show (default: 5)
  --json               one JSON object on standard output instead of text, also for errors
  --v=1                log what is done to standard error
  --help, --version    this text, the version; --helpfull lists glog's flags too

Exit codes:
  0  done
)";

constexpr char kAfterExitCodes[] = R"(
Examples:
  run_model squeezenet1_1 artifacts images/chelsea.png labels/imagenet.txt
  run_model resnet18 ../artifacts ../images/cat.png ../artifacts/labels.txt input0 --normalize
  run_model caffenet models cat.jpg labels.txt --bgr --no-normalize --mean 104 117 123
  run_model detector artifacts --inputs in.npz --outputs out.npz --json
  run_model squeezenet1_1 artifacts --fill-mode random --print-time --repeat 100
  run_model squeezenet1_1 artifacts --fill-mode random --sweep threads
  run_model --inspect artifacts/squeezenet1_1/native/model.so
)";

}  // namespace

std::string help_text() {
  std::string text = std::string(kBeforeExitCodes) + exit_codes_text(ErrorKind::kModel);
  text += "  " + std::to_string(kExitWorse) + "  " + kExitWorseText + "\n";
  return text + kAfterExitCodes;
}

std::string version_text() { return std::string("run_model ") + RUN_MODEL_VERSION + "\n"; }

}  // namespace run_model

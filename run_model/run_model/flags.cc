#include "run_model/run_model/flags.h"

#include "run_model/run_model/measuring_flags.h"

namespace run_model {

constinit RunFlags run_flags;

namespace {

constexpr RunFlags& f = run_flags;

constexpr Entry kUsages[] = {
    {.name = "NAME ARTIFACTS IMAGE [LABELS [INPUT]] [flags]",
     .words = "say what is in a picture, and where"},
    {.name = "NAME ARTIFACTS --inputs IN.npz --outputs OUT.npz", .words = "run on tensors"},
    {.name = "[NAME] ARTIFACTS --calls CALLS.json",
     .words = "call functions of a Relax executable"},
    {.name = "[NAME] ARTIFACTS --print-time", .words = "measure, on random values"},
    {.name = "--inspect [NAME] ARTIFACTS", .words = "show what an artifact is"},
    {.name = "--compare FIRST SECOND", .words = "compare two results"},
    {.name = "--list-devices", .words = "show this machine's GPUs"},
};

constexpr Entry kArguments[] = {
    {.name = "NAME", .words = "the model's name, as in ARTIFACTS/NAME/<target>/model.so"},
    {.name = "ARTIFACTS",
     .words =
         R"(a folder of artifacts, a library (.so), the start of flat file names, or an archive:
DIR/NAME/<target>/{model,mod}.{so,json,params}, DIR/NAME_tvm.{so,json,params}, one .so that holds
graph and parameters too, or a package of tvmc (.tar, .tar.gz))",
     .more = "They are looked for in this order."},
    {.name = "IMAGE",
     .words = "a picture: PNG, JPEG, WebP and GIF (first frame), BMP, PNM, PSD or TGA; a folder of "
              "pictures; or -, for paths from standard input, one a line",
     .more =
         "Of a folder, files with the endings of pictures are taken in the order of their names. "
         "What cannot be read is named and counted, and the rest is done."},
    {.name = "LABELS",
     .words = "a text file with one class name a line (default: the installed imagenet.txt)",
     .more =
         "The names are in the order of the network's outputs. A plain file name that is not in "
         "the current folder is looked for among the installed lists, see FILES. A model whose "
         "tasks are described needs none; where its classes have no names, these are taken."},
    {.name = "INPUT", .words = "the model's input for the picture, where it has several"},
};

constexpr Flag kPixelFlags[] = {
    {.name = "normalize",
     .storage = &f.normalize,
     .words = "divide by 255, then ImageNet's mean and deviation",
     .negated = "keep 0 to 255, mean 0, deviation 1"},
    {.name = "mean",
     .storage = &f.mean,
     .value = "A B C",
     .words = "subtract these (also --mean=A,B,C)",
     .values = 3},
    {.name = "std",
     .storage = &f.std,
     .value = "A B C",
     .words = "and divide by these; both in the order of the network's channels, so that --bgr "
              "--no-normalize --mean 104 117 123 takes 104 from blue, as Caffe does",
     .values = 3},
    {.name = "mean_order",
     .storage = &f.mean_order,
     .value = "NAME",
     .standard = "network",
     .words = "network (default), or rgb: --mean and --std are in the order red, green, blue "
              "whatever the network's is",
     .choices = "network rgb"},
    {.name = "rgb",
     .storage = &f.rgb,
     .words = "the network takes its channels as red, green, blue (default)"},
    {.name = "bgr",
     .storage = &f.bgr,
     .words = "the network takes its channels as blue, green, red"},
    {.name = "resizer",
     .storage = &f.resizer,
     .value = "NAME",
     .words = "nearest, pil-bilinear (default), pil-bicubic (Pillow up to 12), pil-nearest, "
              "pil13-bilinear, pil13-bicubic (Pillow 13), cv2-linear or cv2-warp (MediaPipe's)",
     .choices = "nearest pil-bilinear pil-bicubic pil-nearest pil13-bilinear pil13-bicubic "
                "cv2-linear cv2-warp"},
    {.name = "fit",
     .storage = &f.fit,
     .value = "NAME",
     .words = "crop (default): short side to --resize, then the middle; squash: both sides to the "
              "input's; letterbox: all of it, padded; pad: padded, then squashed; squash-crop: "
              "both sides to --resize, then the middle",
     .choices = "crop squash letterbox pad squash-crop"},
    {.name = "resize",
     .storage = &f.resize,
     .value = "N",
     .words = "length of the short side (default: 256 for a crop of 224); squash-crop: of both",
     .more = "For other crops the default is in the same proportion."},
    {.name = "crop",
     .storage = &f.crop,
     .value = "N",
     .words = "side of the crop; must be the network's input size"},
    {.name = "size",
     .storage = &f.size,
     .value = "WxH",
     .words = "sides of the network's input, where it leaves them open"},
    {.name = "jpeg_decoder",
     .storage = &f.jpeg_decoder,
     .value = "NAME",
     .standard = "libjpeg-turbo",
     .words = "libjpeg-turbo (default): the pixels of Pillow and OpenCV; or stb: those of wrappers "
              "built on stb_image, to compare with",
     .choices = "libjpeg-turbo stb"},
    {.name = "layout",
     .storage = &f.layout,
     .value = "NAME",
     .words = "NCHW, NHWC, CHW or HWC (default: by the input's shape)",
     .choices = "NCHW NHWC CHW HWC"},
};

constexpr Flag kTaskFlags[] = {
    {.name = "task",
     .storage = &f.task,
     .value = "FILE",
     .words = "what the outputs mean, as JSON (postprocess/README.md has the members)",
     .kind = ValueKind::kFile},
    {.name = "score_threshold",
     .storage = &f.score_threshold,
     .value = "X",
     .words = "the least score of detections, masks' pixels and landmarks' confidence, 0 to 1"},
    {.name = "draw",
     .storage = &f.draw,
     .value = "FILE.png",
     .words = "draw what was found on the picture; of many pictures, into this folder",
     .kind = ValueKind::kFile},
    {.name = "save_mask",
     .storage = &f.save_mask,
     .value = "FILE.png",
     .words =
         "write the class of each pixel as grey (255: not seen; of two classes 0, 255 and 128); "
         "of many pictures, into this folder",
     .kind = ValueKind::kFile},
    {.name = "save_map",
     .storage = &f.save_map,
     .value = "FILE",
     .words =
         "write the first map of numbers, one for each pixel: FILE.npy (float32, NaN: not seen) "
         "or FILE.png (16 bits; the report says what they stand for, 0: not seen); of many "
         "pictures, into this folder",
     .kind = ValueKind::kFile},
    {.name = "map_format",
     .storage = &f.map_format,
     .value = "FORMAT",
     .words = "npy (default) or png: what --save-map writes of many pictures",
     .choices = "npy png"},
    {.name = "coco",
     .storage = &f.coco,
     .value = "FILE.json",
     .words = "write boxes, masks, keypoints and landmarks of all pictures in COCO's format",
     .kind = ValueKind::kFile},
    {.name = "compare_with",
     .storage = &f.compare_with,
     .value = "PICTURE",
     .words = "show how like the embedding of this picture is: the cosine of their angle",
     .kind = ValueKind::kFile},
    {.name = "region",
     .storage = &f.region,
     .value = "X,Y,W,H[,ANGLE]",
     .words = "the network sees this part of the picture, in pixels of it, turned clockwise about "
              "its middle by ANGLE degrees; it may reach beyond the picture"},
    {.name = "detector",
     .storage = &f.detector,
     .value = "NAME",
     .words = "the network sees what this other model of ARTIFACTS has found, one thing after the "
              "other, by the rule \"region\" of its tasks: landmarks on each face"},
    {.name = "given_outputs",
     .storage = &f.given_outputs,
     .value = "FILE.npz",
     .words = "do not run the model: its outputs are in this file",
     .kind = ValueKind::kFile},
};

constexpr Flag kTensorFlags[] = {
    {.name = "inputs",
     .storage = &f.inputs,
     .value = "FILE",
     .words = ".npz with an array of each input's name; .npy for a model with one input",
     .aliases = "i",
     .kind = ValueKind::kFile},
    {.name = "outputs",
     .storage = &f.outputs,
     .value = "FILE",
     .words = "write the outputs to this .npz as output_0, output_1 …; also --save-outputs",
     .aliases = "o save_outputs",
     .kind = ValueKind::kFile},
    {.name = "calls",
     .storage = &f.calls,
     .value = "FILE",
     .words = "call functions of TVM 0.21 and later one after the other, as this JSON file says",
     .more = "For what keeps something between its calls, such as a language model with its cache; "
             "run_model/README.md has the members.",
     .kind = ValueKind::kFile},
    {.name = "save_inputs",
     .storage = &f.save_inputs,
     .value = "FILE",
     .words = "write the inputs to this .npz by their names",
     .kind = ValueKind::kFile},
    {.name = "fill_mode",
     .storage = &f.fill_mode,
     .value = "NAME",
     .words =
         "fill inputs that nothing else gives with zeros, ones or random values: floats from 0 "
         "to 1, bytes of any value, 0 or 1 for wider integers",
     .more = "Wider integers mostly are indices.",
     .choices = "zeros ones random"},
    {.name = "seed",
     .storage = &f.seed,
     .value = "N",
     .standard = "0",
     .words = "other random values (default: {}); the same on every machine"},
    {.name = "dump_input",
     .storage = &f.dump_input,
     .value = "FILE",
     .words = "write the preprocessed picture to this .npy",
     .kind = ValueKind::kFile},
};

constexpr Flag kArtifactFlags[] = {
    {.name = "target",
     .storage = &f.target,
     .value = "NAME",
     .words = "which target's folder (default: native if this CPU runs it, else the one that makes "
              "the most of this CPU)"},
    {.name = "device",
     .storage = &f.device,
     .value = "NAME[:N]",
     .words = "compute on this GPU: opencl:0, vulkan:0, cuda:0, or cpu (default: the first of the "
              "kind that the artifact was compiled for)",
     .more = "Of an artifact for several targets, one for this kind of device is taken; without "
             "--device one for the CPU, where there is any."},
    {.name = "list_devices",
     .storage = &f.list_devices,
     .words = "show the GPUs of this machine that have a driver, and what the others lack"},
    {.name = "verify",
     .storage = &f.verify,
     .standard = "true",
     .negated = "do not compare the files with the checksums in metadata.json"},
    {.name = "function",
     .storage = &f.function,
     .value = "NAME",
     .words = "which function of a library of TVM 0.21 or later (default: main)"},
    {.name = "plan_memory",
     .storage = &f.plan_memory,
     .standard = "true",
     .negated = "lay tensors out as the compiler did, and run every node, also concatenations that "
                "the runtime would otherwise write in place"},
    {.name = "inspect",
     .storage = &f.inspect,
     .words = "show machine, ABI, inputs, outputs and metadata without loading any code"},
};

constexpr Flag kOutputFlags[] = {
    {.name = "topk",
     .storage = &f.topk,
     .value = "N",
     .standard = "5",
     .words = "number of classes to show (default: {})"},
    {.name = "json",
     .storage = &f.json,
     .words = "one JSON object on standard output instead of text, also for errors; of many "
              "pictures one a line for each"},
    {.name = "v", .value = "N", .words = "log what is done to standard error, from 1 on"},
    {.name = "help", .words = "this text; --helpfull lists glog's flags too", .aliases = "h"},
    {.name = "helpfull"},
    {.name = "version", .words = "the version"},
};

constexpr FlagGroup kGroups[] = {
    {.heading = "How pixels become numbers, where the artifact's metadata.json does not say (flags "
                "come first)",
     .more = "For artifacts without metadata.json, --normalize or --no-normalize must be given.",
     .flags = kPixelFlags},
    {.heading = "Boxes, masks, landmarks", .flags = kTaskFlags},
    {.heading = "Tensors", .flags = kTensorFlags},
    {.heading = "Artifact and run", .flags = kArtifactFlags},
    {.heading = "Threads", .flags = kThreadFlags},
    {.heading = "Time",
     .note = "Each of these has the run repeated; statistics and progress are in milliseconds.",
     .more =
         "The report then has the times of loading, of decoding and preprocessing the picture, "
         "and of the first run besides. Percentiles are interpolated as numpy.percentile does. "
         "Outputs that are not bit by bit those of the first run end the program with exit code "
         "8.",
     .flags = kTimeFlags},
    {.heading = "Memory", .flags = kMemoryFlags},
    {.heading = "Profile",
     .note = "The model is run node by node as well, as often as --repeat, --warmup and "
             "--max-seconds say.",
     .flags = kProfileFlags},
    {.heading = "Compare",
     .note = "Two files of what --json has printed of repeated runs, or two .npz or .npy files.",
     .flags = kCompareFlags},
    {.heading = "Output", .flags = kOutputFlags},
};

constexpr ExitCode kExitCodes[] = {
    {kExitWorse, "--compare: the second file is slower, or differs"},
    {kExitSomeFailed, "of many pictures, some could not be looked at"}};

constexpr Entry kEnvironment[] = {
    {.name = "TVM_NUM_THREADS", .words = "The number of threads where --threads is not given."},
    {.name = "OMP_NUM_THREADS", .words = "The same, where TVM_NUM_THREADS is not set."},
};

constexpr Entry kFiles[] = {
    {.name = "share/run_model/labels/imagenet.txt",
     .words = "The 1000 classes of ImageNet, beside the folder of the program: an installed "
              "run_model finds it by the name imagenet.txt."},
};

constexpr Entry kExamples[] = {
    {.name = "run_model squeezenet1_1 artifacts images/chelsea.png labels/imagenet.txt",
     .words = "Classify a picture with a network of the folder artifacts:"},
    {.name = "run_model resnet18 ../artifacts ../images/cat.png ../artifacts/labels.txt input0 "
             "--normalize",
     .words = "A network without metadata, with the name of its input:"},
    {.name = "run_model caffenet models cat.jpg labels.txt --bgr --no-normalize --mean 104 117 123",
     .words = "A Caffe network:"},
    {.name = "run_model face_detection artifacts images/astronaut.png --draw face.png",
     .words = "Find faces, and draw them:"},
    {.name = "run_model detector artifacts --inputs in.npz --outputs out.npz --json",
     .words = "Any model, on tensors that Python has saved with numpy.savez:"},
    {.name = "run_model squeezenet1_1 artifacts --print-time --repeat 100",
     .words = "How long does a run take?"},
    {.name = "run_model net.tar --print-time", .words = "And with what tvmc has packed?"},
    {.name = "run_model squeezenet1_1 artifacts --sweep threads",
     .words = "With how many threads is it fastest?"},
    {.name = "run_model --inspect artifacts/squeezenet1_1/native/model.so",
     .words = "Will this library run here?"},
};

}  // namespace

constexpr Manual kRunManual{
    .program = "run_model",
    .summary = "run a model that TVM has compiled, without TVM",
    .description =
        "run_model runs a model that TVM (0.7 to 0.19, and 0.21 and later) has compiled, "
        "without TVM.",
    .more = "Flags may stand anywhere.",
    .usages = kUsages,
    .arguments = kArguments,
    .groups = kGroups,
    .last_error = ErrorKind::kModel,
    .exit_codes = kExitCodes,
    .environment = kEnvironment,
    .files = kFiles,
    .examples = kExamples,
    .see_also = "check_zoo rpc_server",
};

}  // namespace run_model

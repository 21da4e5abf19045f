#include "run_model/run_model/flags.h"

// help_text.cc says the same in the words and the order that users see.
DEFINE_string(inputs, "",
              "run on these tensors instead of a picture (.npz, or .npy for one input)");
DEFINE_string(outputs, "", "write the model's outputs to this .npz file");
DEFINE_bool(normalize, false, "scale pixels to 0..1 and normalise; --no-normalize keeps 0..255");
DEFINE_bool(rgb, false, "the network takes its channels in the order red, green, blue");
DEFINE_bool(bgr, false, "the network takes its channels in the order blue, green, red");
DEFINE_string(mean, "", "three values to subtract, one for each channel");
DEFINE_string(std, "", "three values to divide by, one for each channel");
DEFINE_string(mean_order, "network", "the order of --mean and --std: network or rgb");
DEFINE_string(resizer, "", "nearest, pil-bilinear, pil-bicubic, pil13-bilinear, pil13-bicubic or cv2-linear");
DEFINE_string(fit, "", "crop, squash or letterbox");
DEFINE_int32(resize, 0, "length of the short side before the crop");
DEFINE_int32(crop, 0, "side of the centre crop: the network's input size");
DEFINE_string(layout, "", "NCHW or NHWC");
DEFINE_string(dump_input, "", "write the network's input to this .npy file");
DEFINE_string(fill_mode, "", "fill inputs that are not given with zeros, ones or random values");
DEFINE_uint64(seed, 0, "where the random values of --fill-mode random begin");
DEFINE_string(save_inputs, "", "write the model's inputs to this .npz file");
DEFINE_string(target, "", "which of the artifact's targets to run");
DEFINE_bool(verify, true, "compare the artifact's files with the checksums in its metadata");
DEFINE_bool(
    plan_memory, true,
    "share memory between tensors more tightly than the compiler did, and leave concatenations "
    "out that only put tensors behind each other");
DEFINE_bool(inspect, false, "show what the artifact is, without loading its code");
DEFINE_bool(json, false, "print one JSON object instead of text");
DEFINE_int32(topk, 5, "number of classes to report");
DEFINE_bool(print_memory, false, "show where the memory goes, stage by stage");

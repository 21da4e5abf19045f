#include "run_model/check_zoo/flags.h"

// check_zoo_help.cc says the same in the words and the order that users see.
DEFINE_string(artifacts, "artifacts", "the zoo: a folder with MODEL/TARGET/model.so");
DEFINE_string(golden, "", "folders with MODEL/PICTURE.json, separated by commas");
DEFINE_string(images, "images", "the folder of the pictures");
DEFINE_string(tolerances, "", "tolerances.json");
DEFINE_string(targets, "", "targets.json");
DEFINE_string(labels, "", "the names of the classes, one a line");
DEFINE_string(programs, "", "the folder of PRESET/bin/check_zoo for emulated targets");
DEFINE_string(models, "", "check these models only");
DEFINE_string(target, "", "check these targets only; all for every target there is");
DEFINE_string(forms, "triple", "check these forms of artifacts; all for every form");
DEFINE_string(pictures, "", "check these pictures only");
DEFINE_string(shard, "", "check the I-th of N parts only: I/N");
DEFINE_int32(jobs, 0, "artifacts checked at a time; 0 for one for each CPU");
DEFINE_int32(threads, 1, "threads of each");
DEFINE_double(timeout, 120, "seconds that a picture may take, ten times as many under an emulator");
DEFINE_string(junit, "", "write a JUnit report to this file");
DEFINE_bool(json, false, "print one JSON object instead of the table");
DEFINE_bool(verbose, false, "show every picture");
DEFINE_bool(allow_skip, false, "exit with 77 instead of an error when there is nothing to check");
DEFINE_bool(locate, false, "on a mismatch, find the first node that departs");
DEFINE_string(intermediates, "build/zoo/intermediates", "the folder of MODEL/PICTURE.npz");
DEFINE_bool(worker, false, "check one artifact and print JSON lines; used by check_zoo itself");

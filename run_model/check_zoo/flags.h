// The flags of check_zoo.
#pragma once

#include <gflags/gflags.h>

DECLARE_string(artifacts);
DECLARE_string(golden);
DECLARE_string(images);
DECLARE_string(tolerances);
DECLARE_string(targets);
DECLARE_string(labels);
DECLARE_string(programs);
DECLARE_string(models);
DECLARE_string(target);
DECLARE_string(forms);
DECLARE_string(pictures);
DECLARE_string(shard);
DECLARE_int32(jobs);
DECLARE_int32(threads);
DECLARE_double(timeout);
DECLARE_string(junit);
DECLARE_bool(json);
DECLARE_bool(verbose);
DECLARE_bool(allow_skip);
DECLARE_bool(locate);
DECLARE_string(intermediates);
DECLARE_bool(worker);

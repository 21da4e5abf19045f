/* A single-file export: the graph and one parameter inside the library. The layout is that of TVM's
   ModuleSerializer, little-endian. FACTORY is the name that the release gave to the graph's module.
 */
#include "packed.h"

#define NAME(field, text)  \
  uint64_t field##_length; \
  char field[sizeof(text) - 1]
#define GRAPH "{\"nodes\": []}"

struct __attribute__((packed)) Blob {
  uint64_t bytes;
  uint64_t modules;
  NAME(factory, FACTORY);
  NAME(graph, GRAPH);
  uint64_t tensors;
  uint64_t names;
  NAME(name, "p0");
  uint64_t tensor_magic;
  uint64_t tensor_reserved;
  int32_t device_type;
  int32_t device_id;
  int32_t dimensions;
  uint8_t type_code;
  uint8_t type_bits;
  uint16_t type_lanes;
  int64_t shape[1];
  int64_t data_bytes;
  float data[3];
  NAME(module_name, "default");
  NAME(library, "_lib");
  NAME(tree, "_import_tree");
  uint64_t row_count;
  uint64_t rows[3];
  uint64_t child_count;
  uint64_t children[1];
};

#define TEXT(text) sizeof(text) - 1, text

const struct Blob __tvm_dev_mblob = {sizeof(struct Blob) - 8,
                                     3,
                                     TEXT(FACTORY),
                                     TEXT(GRAPH),
                                     1,
                                     1,
                                     TEXT("p0"),
                                     0xDD5E40F096B4A13F,
                                     0,
                                     1,
                                     0,
                                     1,
                                     2,
                                     32,
                                     1,
                                     {3},
                                     sizeof(float) * 3,
                                     {0.5f, 1.5f, 2.5f},
                                     TEXT("default"),
                                     TEXT("_lib"),
                                     TEXT("_import_tree"),
                                     3,
                                     {0, 1, 1},
                                     1,
                                     {1}};

PACKED(tvmgen_default_fused_add) { return 0; }

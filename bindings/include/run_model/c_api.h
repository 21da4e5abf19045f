/* Compiled models from C, and from every language that calls C: librun_model.so.
 *
 * Functions give RUN_MODEL_OK or what went wrong, which is the exit code that the programs have for
 * it (`run_model --help`); run_model_last_error() then has the sentence.  They neither print nor
 * end the process.  Texts are UTF-8 and end with a 0.  A model is for one thread at a time;
 * different models may be used by different threads. */
#ifndef RUN_MODEL_C_API_H_
#define RUN_MODEL_C_API_H_

#include <dlpack/dlpack.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RUN_MODEL_API __attribute__((visibility("default")))

enum run_model_status {
  RUN_MODEL_OK = 0,
  RUN_MODEL_INTERNAL = 1,     /* a defect of run_model itself, or no memory */
  RUN_MODEL_USAGE = 2,        /* an argument that makes no sense */
  RUN_MODEL_FILE = 3,         /* a file is missing or unreadable */
  RUN_MODEL_FORMAT = 4,       /* a file is not what it claims to be */
  RUN_MODEL_INCOMPATIBLE = 5, /* an artifact for another machine or compiler */
  RUN_MODEL_MISMATCH = 6,     /* pieces that do not fit together, or a tensor of another form */
  RUN_MODEL_IMAGE = 7,        /* a picture that cannot be decoded */
  RUN_MODEL_FAILED = 8        /* the model failed while running, or gave NaN or infinity */
};

/* A model that is loaded. */
typedef struct run_model_model run_model_model;

/* All zeros are the defaults. */
typedef struct {
  const char* target; /* one of a folder's targets; null: the one that fits this machine */
  const char* device; /* "cpu", "opencl", "vulkan:1" …; null: what the artifact was compiled for */
  const char* labels; /* names of classes, one a line, where the tasks have none; may be null */
  const char* tasks;  /* file that says what outputs mean (--task); null: the artifact's tasks */
  double score_threshold; /* of detections, in place of the tasks' own; 0: those */
  int threads;            /* 0: as many as the programs take by themselves */
  int skip_checksums;     /* not 0: files are not compared with metadata.json */
} run_model_options;

/* What an input or output is.  `name` and `shape` are valid until the model is closed or is asked
 * for the same again. */
typedef struct {
  const char* name;
  const int64_t* shape; /* -1 for a dimension that may be any number */
  int ndim;
  DLDataType dtype;
} run_model_tensor_info;

/* A part of a picture, in its pixels: upright, and then turned clockwise about its middle.  It may
 * reach beyond the picture. */
typedef struct {
  double x, y, width, height;
  double angle; /* degrees */
} run_model_region;

/* "0.1.0" */
RUN_MODEL_API const char* run_model_version(void);

/* What the last function of this thread that failed has to say: which file or argument, what was
 * found, what was expected, what to do. */
RUN_MODEL_API const char* run_model_last_error(void);

/* Loads a compiled model, in any form that the program run_model takes.  `name` may be null or
 * empty where `artifacts` is one model's own; `options` may be null.  Nothing is run. */
RUN_MODEL_API int run_model_open(const char* name, const char* artifacts,
                                 const run_model_options* options, run_model_model** model);

/* Null is allowed. */
RUN_MODEL_API void run_model_close(run_model_model* model);

/* Inputs that are to be set, without parameters. */
RUN_MODEL_API int run_model_input_count(const run_model_model* model, size_t* count);
RUN_MODEL_API int run_model_output_count(const run_model_model* model, size_t* count);
RUN_MODEL_API int run_model_input_info(run_model_model* model, size_t index,
                                       run_model_tensor_info* info);

/* By the name that metadata.json has for it, else "output_0" and so on. */
RUN_MODEL_API int run_model_output_info(run_model_model* model, size_t index,
                                        run_model_tensor_info* info);

/* Copies a tensor in CPU memory, dense and in row-major order (strides null or so). */
RUN_MODEL_API int run_model_set_input(run_model_model* model, size_t index, const DLTensor* tensor);

/* The same without a copy: each run reads the tensor itself, which must also be aligned to 128
 * bytes, until the input is set otherwise.  Its deleter is called, by the thread that is then in a
 * function of this interface, once neither the model nor an output that is the input itself needs
 * it; where this fails, the tensor stays the caller's and the input as it was. */
RUN_MODEL_API int run_model_share_input(run_model_model* model, size_t index,
                                        DLManagedTensor* tensor);

/* Decodes a picture file as the program run_model does: `width` x `height` pixels from top to
 * bottom without gaps, three bytes R, G, B each, which run_model_free_pixels() frees. */
RUN_MODEL_API int run_model_load_pixels(const char* path, uint8_t** pixels, int* width,
                                        int* height);

/* Null is allowed. */
RUN_MODEL_API void run_model_free_pixels(uint8_t* pixels);

/* Of pictures that are set from now on the model sees this part only; null: all. */
RUN_MODEL_API int run_model_set_region(run_model_model* model, const run_model_region* region);

/* Decodes a picture file and writes it to an input as metadata.json says that the model was
 * trained. `width` and `height`: how large the model is to see it, where it leaves that open, else
 * 0. */
RUN_MODEL_API int run_model_set_picture(run_model_model* model, size_t index, const char* path,
                                        int width, int height);

/* The same of pixels: rows from top to bottom without gaps, three bytes R, G, B each. */
RUN_MODEL_API int run_model_set_pixels(run_model_model* model, size_t index, const uint8_t* pixels,
                                       int pixels_width, int pixels_height, int width, int height);

/* Fails where an input was never set. */
RUN_MODEL_API int run_model_run(run_model_model* model);

/* A view of an output of the last run, to be read only.  `data` and `shape` are valid until the
 * same output is asked for again, the next run, another tensor for an input, or the model is
 * closed. */
RUN_MODEL_API int run_model_output(run_model_model* model, size_t index, DLTensor* view);

/* The same memory, of a model on a GPU a copy, to be read only.  It stays until the deleter
 * is called, also when the model is closed; later runs may write other numbers to it.  The deleter
 * may be called by any thread, also while the model runs. */
RUN_MODEL_API int run_model_share_output(run_model_model* model, size_t index,
                                         DLManagedTensor** tensor);

/* What the outputs of the last run say of the picture that was set last, as the artifact's tasks
 * read them, else of the first output's classes: the JSON list that `run_model --json` has as
 * "results" (run_model/README.md).  `classes`: how many a classification lists at most.  Valid
 * until the next call for this model. */
RUN_MODEL_API int run_model_results(run_model_model* model, size_t classes, const char** json);

/* Where what `detector` found in its last run is to be seen by `model`: the JSON list that
 * `run_model --json --detector` has as "regions", whose members x, y, width, height and angle make
 * a run_model_region.  Valid until the next call for `model`. */
RUN_MODEL_API int run_model_regions(run_model_model* model, const run_model_model* detector,
                                    const char** json);

#ifdef __cplusplus
}
#endif

#endif /* RUN_MODEL_C_API_H_ */

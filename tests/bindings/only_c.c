/* What a program in C does: classifies by a tensor whose channels have these values, and gives the
 * best class, or less than 0. */
#include <run_model/c_api.h>

int best_class_in_c(const char* artifacts, const float* channels);

int best_class_in_c(const char* artifacts, const float* channels) {
  enum { kChannels = 3, kPixels = 16 };
  run_model_model* model = 0;
  float numbers[kChannels * kPixels];
  int64_t shape[] = {1, kChannels, 4, 4};
  DLTensor input = {numbers, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, 0, 0};
  DLTensor output;
  int best = -1, i;
  for (i = 0; i < kChannels * kPixels; ++i) numbers[i] = channels[i / kPixels];
  if (run_model_open("net", artifacts, 0, &model) == RUN_MODEL_OK &&
      run_model_set_input(model, 0, &input) == RUN_MODEL_OK &&
      run_model_run(model) == RUN_MODEL_OK && run_model_output(model, 0, &output) == RUN_MODEL_OK) {
    const float* scores = (const float*)output.data;
    best = 0;
    for (i = 1; i < output.shape[1]; ++i) {
      if (scores[i] > scores[best]) best = i;
    }
  }
  run_model_close(model);
  return best;
}

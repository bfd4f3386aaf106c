/* minimal: the smallest useful program. Minimises (w - 3)^2 and saves the weight and the loss of every second step.
 *
 *   usage: tornasole_minimal_c OUT_DIR
 *
 * minimal.cc is the same program in C++ and writes the same values. */

#include <stdio.h>

#include "tornasole/c.h"

/* One float32 as a tensor of shape [1]. */
static tornasole_tensor_t one_float(const float* value) {
  static const int64_t kShape[] = {1};
  const tornasole_tensor_t tensor = {TORNASOLE_FLOAT32, 1, kShape, NULL, value};
  return tensor;
}

static tornasole_hook_t* open_hook(const char* out_dir) {
  tornasole_hook_t* hook = NULL;
  tornasole_options_t* options = tornasole_options_new();
  if (tornasole_options_set(options, "out_dir", out_dir) == TORNASOLE_OK &&
      tornasole_options_set(options, "save_interval", "2") == TORNASOLE_OK &&
      tornasole_options_set(options, "include_regex", "^weight$, ^loss$") == TORNASOLE_OK) {
    hook = tornasole_open(options);
  }
  tornasole_options_free(options);
  return hook;
}

int main(int count, char** arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: tornasole_minimal_c OUT_DIR\n");
    return 2;
  }
  tornasole_hook_t* hook = open_hook(arguments[1]);
  if (hook == NULL) {
    fprintf(stderr, "%s\n", tornasole_last_error());
    return 1;
  }

  float weight = 0.0F;
  for (int i = 0; i < 10 && !tornasole_stop_requested(hook); ++i) {
    tornasole_begin_step(hook, TORNASOLE_TRAIN);
    const float distance = weight - 3.0F;
    const float loss = distance * distance;
    const tornasole_tensor_t weight_tensor = one_float(&weight);
    const tornasole_tensor_t loss_tensor = one_float(&loss);
    tornasole_save(hook, "weight", &weight_tensor);
    tornasole_save(hook, "loss", &loss_tensor);
    tornasole_end_step(hook); /* publishes it */
    weight -= 0.25F * 2.0F * distance;
  }
  tornasole_save_scalar(hook, "final_weight", weight);

  /* Training need not look at this: what went wrong has been logged and is part of the run. */
  if (tornasole_close(hook) != TORNASOLE_OK) fprintf(stderr, "%s\n", tornasole_last_error());
  char* report = tornasole_report_json(hook);
  printf("%s\n", report);
  tornasole_text_free(report);
  tornasole_free(hook);
  return 0;
}

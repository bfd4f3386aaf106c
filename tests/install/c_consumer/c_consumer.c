/* A program of somebody else, in C: captures three steps into the directory it is given. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tornasole/c.h>

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, tornasole_last_error());
  return 1;
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  tornasole_options_t* options = tornasole_options_new();
  if (tornasole_options_set(options, "out_dir", arguments[1]) != TORNASOLE_OK) return fail("out_dir");
  if (tornasole_options_set(options, "save_interval", "1") != TORNASOLE_OK) return fail("save_interval");
  if (tornasole_options_set(options, "no_such_option", "1") != TORNASOLE_INVALID) return fail("no_such_option");
  tornasole_hook_t* hook = tornasole_open(options);
  tornasole_options_free(options);
  if (hook == NULL) return fail("open");

  for (int i = 0; i < 3; ++i) {
    float loss = 1.0F / (float)(i + 1);
    int64_t shape[1] = {1};
    tornasole_tensor_t tensor = {.dtype = TORNASOLE_FLOAT32, .rank = 1, .shape = shape, .data = &loss};
    if (tornasole_begin_step(hook, TORNASOLE_TRAIN) != TORNASOLE_OK) return fail("begin_step");
    if (tornasole_save(hook, "loss", &tensor) != TORNASOLE_OK) return fail("save");
    if (tornasole_end_step(hook) != TORNASOLE_OK) return fail("end_step");
  }
  if (tornasole_close(hook) != TORNASOLE_OK) return fail("close");
  char* report = tornasole_report_json(hook);
  if (report == NULL) return fail("report");
  /* Good enough for a test: the number after the one key that matters. */
  const char* key = strstr(report, "\"committed_steps\":");
  if (key != NULL) printf("%d\n", atoi(key + strlen("\"committed_steps\":")));
  tornasole_text_free(report);
  tornasole_free(hook);
  return 0;
}

/* The C interface, used from C: every call, every wrong argument, and what ends up on disk. */
#define _XOPEN_SOURCE 700

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tornasole/c.h"

static int failures = 0;
static char root[4096];

#define EXPECT(condition)                                                                                       \
  do {                                                                                                          \
    if (!(condition)) {                                                                                         \
      fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #condition, tornasole_last_error()); \
      ++failures;                                                                                               \
    }                                                                                                           \
  } while (0)
#define EXPECT_REFUSED(call, text)                        \
  do {                                                    \
    EXPECT((call) == TORNASOLE_INVALID);                  \
    EXPECT(strstr(tornasole_last_error(), text) != NULL); \
  } while (0)

/* ---- helpers */

static const char* in_root(const char* name) {
  static char path[8192];
  snprintf(path, sizeof path, "%s/%s", root, name);
  return path;
}

static int exists(const char* run, const char* file) {
  char path[16384];
  struct stat found;
  snprintf(path, sizeof path, "%s/%s", in_root(run), file);
  return stat(path, &found) == 0;
}

/* The text of a small file; the caller frees it. An empty text if there is none. */
static char* read_file(const char* run, const char* file) {
  char path[16384];
  snprintf(path, sizeof path, "%s/%s", in_root(run), file);
  char* text = calloc(1, 1 << 20);
  FILE* stream = fopen(path, "rb");
  if (stream != NULL) {
    const size_t got = fread(text, 1, (1 << 20) - 1, stream);
    text[got] = '\0';
    fclose(stream);
  }
  return text;
}

static int file_contains(const char* run, const char* file, const char* text) {
  char* content = read_file(run, file);
  const int found = strstr(content, text) != NULL;
  if (!found) fprintf(stderr, "%s of %s has no %s: %s\n", file, run, text, content);
  free(content);
  return found;
}

static int report_contains(tornasole_hook_t* hook, const char* text) {
  char* report = tornasole_report_json(hook);
  const int found = report != NULL && strstr(report, text) != NULL;
  if (!found) fprintf(stderr, "the report has no %s: %s\n", text, report == NULL ? "(null)" : report);
  tornasole_text_free(report);
  return found;
}

static void ignore_log(tornasole_log_level_t level, const char* message, void* user) {
  (void)level;
  (void)message;
  ++*(int*)user;
}

static int messages = 0;

static tornasole_options_t* options_for(const char* run) {
  tornasole_options_t* options = tornasole_options_new();
  EXPECT(options != NULL);
  EXPECT(tornasole_options_set(options, "out_dir", in_root(run)) == TORNASOLE_OK);
  EXPECT(tornasole_options_set(options, "save_interval", "1") == TORNASOLE_OK);
  EXPECT(tornasole_options_set_log(options, ignore_log, &messages) == TORNASOLE_OK);
  return options;
}

static tornasole_hook_t* open_with(tornasole_options_t* options) {
  tornasole_hook_t* hook = tornasole_open(options);
  tornasole_options_free(options);
  if (hook == NULL) {
    fprintf(stderr, "cannot open: %s\n", tornasole_last_error());
    exit(1);
  }
  return hook;
}

static const int64_t kShape[] = {2, 3};
static const float kValues[] = {1, 2, 3, 4, 5, 6};

static tornasole_tensor_t a_tensor(void) {
  tornasole_tensor_t tensor = {TORNASOLE_FLOAT32, 2, kShape, NULL, kValues};
  return tensor;
}

/* ---- tests */

static void the_library_names_itself_and_its_codes(void) {
  EXPECT(strlen(tornasole_version()) >= 5);
  EXPECT(strcmp(tornasole_code_name(TORNASOLE_OK), "ok") == 0);
  EXPECT(strcmp(tornasole_code_name(TORNASOLE_INVALID), "invalid") == 0);
  EXPECT(strcmp(tornasole_code_name(TORNASOLE_UNSUPPORTED), "unsupported") == 0);
  EXPECT(strcmp(tornasole_code_name(-1), "unknown") == 0);
  EXPECT(strcmp(tornasole_code_name(99), "unknown") == 0);
  EXPECT(tornasole_last_error_code() == TORNASOLE_OK);
  EXPECT(strcmp(tornasole_last_error(), "") == 0);
  tornasole_text_free(NULL);
  tornasole_options_free(NULL);
  tornasole_free(NULL);
}

static void every_option_is_known_by_its_name(void) {
  static const struct {
    const char *name, *value;
  } kGood[] = {
      {"out_dir", "x"},
      {"tensorboard_dir", "y"},
      {"export_tensorboard", "true"},
      {"dry_run", "1"},
      {"reductions", "min, abs_max, l2"},
      {"save_raw_tensor", "true"},
      {"save_shape", "false"},
      {"save_interval", "10"},
      {"start_step", "1"},
      {"end_step", "9"},
      {"save_steps", "1,2"},
      {"when_nan", "loss"},
      {"train.save_interval", "3"},
      {"eval.start_step", "0"},
      {"predict.save_steps", "4"},
      {"global.when_nan", "a,b"},
      {"include_regex", "relu"},
      {"include_collections", "weights, losses"},
      {"save_all", "false"},
      {"include_workers", "all"},
      {"framework", "pytorch"},
      {"framework_version", "2.1"},
      {"rank", "0"},
      {"world_size", "1"},
      {"worker", "worker_7"},
      {"fsync", "5s"},
      {"when_full", "block"},
      {"queue_bytes", "1048576"},
      {"queue_wait_ms", "10"},
      {"close_wait_s", "1.5"},
      {"spool_dir", "/tmp"},
      {"spool_bytes", "1024"},
      {"readable_by_smdebug", "true"},
      {"resume", "false"},
      {"shared", "false"},
      {"flush_on_signal", "false"},
      {"honour_stop", "true"},
      {"reduce_threads", "1"},
      {"max_bytes_per_step", "100000"},
      {"max_bytes_per_run", "1000000"},
      {"keep_steps", "5"},
      {"flight_recorder_steps", "2"},
      {"flight_recorder_bytes", "1024"},
      {"flight_recorder_raw", "true"},
      {"derived", "counts"},
      {"capture_functional", "false"},
      {"warn_unmatched", "true"},
      {"stable_names", "true"},
      {"rules", "VanishingGradient"},
  };
  static const struct {
    const char *name, *value, *error;
  } kBad[] = {
      {"save_intervall", "1", "did you mean save_interval?"},
      {"", "1", "is no option"},
      {"save_interval", "ten", "allowed: an integer of at least 1"},
      {"save_interval", "0", "at least 1"},
      {"train.save_interval", "", "save_interval"},
      {"dry_run", "maybe", "dry_run"},
      {"rank", "x", "rank"},
      {"when_full", "explode", "allowed: drop, block"},
      {"framework", "caffe", "xgboost"},
      {"include_workers", "some", "one, all"},
      {"close_wait_s", "soon", "close_wait_s"},
      {"reductions", "average", "average"},
      {"out_dir", "", "out_dir"},
      {"include_regex", "\xff", "include_regex"},
  };
  tornasole_options_t* options = tornasole_options_new();
  for (size_t i = 0; i < sizeof kGood / sizeof *kGood; ++i) {
    const int is_set = tornasole_options_set(options, kGood[i].name, kGood[i].value) == TORNASOLE_OK;
    if (!is_set) fprintf(stderr, "option %s\n", kGood[i].name);
    EXPECT(is_set);
  }
  for (size_t i = 0; i < sizeof kBad / sizeof *kBad; ++i) {
    EXPECT_REFUSED(tornasole_options_set(options, kBad[i].name, kBad[i].value), kBad[i].error);
    EXPECT(tornasole_last_error_code() == TORNASOLE_INVALID);
    EXPECT(tornasole_last_error_kind() == TORNASOLE_KIND_VALUE);
  }
  EXPECT(tornasole_options_add(options, "include_regex", "a,b") == TORNASOLE_OK);
  EXPECT(tornasole_options_add(options, "include_collections", "mine") == TORNASOLE_OK);
  EXPECT(tornasole_options_add(options, "when_nan", "loss") == TORNASOLE_OK);
  EXPECT(tornasole_options_add(options, "eval.when_nan", "loss") == TORNASOLE_OK);
  EXPECT(tornasole_options_add(options, "derived", "hash") == TORNASOLE_OK);
  EXPECT(tornasole_options_add(options, "rules", "Overfit") == TORNASOLE_OK);
  EXPECT_REFUSED(tornasole_options_add(options, "rank", "1"), "no list");
  EXPECT_REFUSED(tornasole_options_add(options, "ranks", "1"), "is no option");
  EXPECT_REFUSED(tornasole_options_set_json(options, "[1]"), "allowed: an object");
  EXPECT_REFUSED(tornasole_options_set_json(options, "{\"rank\": "), "not JSON");
  EXPECT_REFUSED(tornasole_options_set_json(options, "{\"rank\": 0, \"rang\": null}"), "is no option");
  EXPECT(tornasole_options_set_json(options, "{\"rank\": 0, \"save_steps\": [1, 2], \"fsync\": null}") == TORNASOLE_OK);
  tornasole_options_free(options);
}

static void what_cannot_be_opened_says_why(void) {
  tornasole_options_t* options = tornasole_options_new();
  EXPECT(tornasole_open(options) == NULL);
  EXPECT(strstr(tornasole_last_error(), "out_dir") != NULL);
  EXPECT(tornasole_last_error_kind() == TORNASOLE_KIND_RUNTIME);
  EXPECT(tornasole_options_set(options, "out_dir", in_root("never")) == TORNASOLE_OK);
  EXPECT(tornasole_options_set(options, "queue_bytes", "-1") == TORNASOLE_OK);
  EXPECT(tornasole_open(options) == NULL);
  EXPECT(strstr(tornasole_last_error(), "queue_bytes") != NULL);
  EXPECT(tornasole_open_file(in_root("missing.json"), NULL) == NULL);
  EXPECT(tornasole_last_error_code() == TORNASOLE_NOT_FOUND);
  tornasole_options_free(options);
}

static void null_arguments_are_errors(void) {
  tornasole_hook_t* hook = open_with(options_for("nulls"));
  tornasole_options_t* options = tornasole_options_new();
  const tornasole_tensor_t tensor = a_tensor();
  const char* const no_name[] = {NULL};
  const tornasole_code_t codes[] = {
      tornasole_options_set(NULL, "rank", "0"),
      tornasole_options_set(options, NULL, "0"),
      tornasole_options_set(options, "rank", NULL),
      tornasole_options_add(NULL, "rules", "x"),
      tornasole_options_add(options, NULL, "x"),
      tornasole_options_add(options, "rules", NULL),
      tornasole_options_set_json(NULL, "{}"),
      tornasole_options_set_json(options, NULL),
      tornasole_options_set_log(NULL, NULL, NULL),
      tornasole_close(NULL),
      tornasole_fail(NULL, "x"),
      tornasole_begin_step(NULL, TORNASOLE_TRAIN),
      tornasole_begin_step_at(NULL, TORNASOLE_TRAIN, 1),
      tornasole_end_step(NULL),
      tornasole_set_mode(NULL, TORNASOLE_TRAIN),
      tornasole_prepare(NULL),
      tornasole_save(NULL, "x", &tensor),
      tornasole_save(hook, NULL, &tensor),
      tornasole_save(hook, "x", NULL),
      tornasole_save_input(NULL, "x", &tensor),
      tornasole_save_output(hook, "x", NULL),
      tornasole_save_tensor(NULL, "x", &tensor, NULL, 0),
      tornasole_save_tensor(hook, NULL, &tensor, NULL, 0),
      tornasole_save_tensor(hook, "x", NULL, NULL, 0),
      tornasole_save_tensor(hook, "x", &tensor, NULL, 1),
      tornasole_save_tensor(hook, "x", &tensor, no_name, 1),
      tornasole_save_scalar(NULL, "x", 1),
      tornasole_save_scalar(hook, NULL, 1),
      tornasole_save_scalar_at(hook, NULL, 1, 0, 0),
      tornasole_collection_include(NULL, "a", "b"),
      tornasole_collection_include(hook, NULL, "b"),
      tornasole_collection_exclude(hook, "a", NULL),
      tornasole_collection_add(hook, "a", NULL),
      tornasole_collection_configure(hook, "a", NULL),
      tornasole_describe_model(hook, NULL),
      tornasole_describe_model(NULL, "{}"),
      tornasole_set_facts(hook, NULL),
      tornasole_dump_flight_recorder(NULL),
  };
  for (size_t i = 0; i < sizeof codes / sizeof *codes; ++i) {
    if (codes[i] != TORNASOLE_INVALID) fprintf(stderr, "null argument case %zu\n", i);
    EXPECT(codes[i] == TORNASOLE_INVALID);
  }
  EXPECT(tornasole_open(NULL) == NULL);
  EXPECT(strstr(tornasole_last_error(), "tornasole_open: options is null") != NULL);
  EXPECT(tornasole_wants(NULL, "x") == 0 && tornasole_wants(hook, NULL) == 0);
  EXPECT(tornasole_stop_requested(NULL) == 0);
  EXPECT(tornasole_mode(NULL) == 0);
  EXPECT(tornasole_step(NULL) == -1);
  EXPECT(tornasole_mode_step(NULL, TORNASOLE_TRAIN) == -1);
  EXPECT(tornasole_last_saved_step(NULL) == -1);
  EXPECT(tornasole_out_dir(NULL) == NULL && tornasole_worker(NULL) == NULL);
  EXPECT(tornasole_report_json(NULL) == NULL);
  EXPECT(tornasole_collection_json(NULL, "x") == NULL);
  EXPECT(tornasole_collection_names_json(NULL) == NULL);
  tornasole_options_free(options);
  tornasole_free(hook);
}

static void tensors_that_cannot_be_are_refused(void) {
  static const int64_t kNegative[] = {2, -1};
  static const int64_t kHuge[] = {INT64_MAX, 4};
  static const int64_t kTwo[] = {2};
  static const char* const kHole[] = {"a", NULL};
  int64_t many[65];
  for (size_t i = 0; i < 65; ++i) many[i] = 1;
  const struct {
    const char* error;
    tornasole_tensor_t tensor;
  } kCases[] = {
      {"shape is null", {TORNASOLE_FLOAT32, 1, NULL, NULL, kValues}},
      {"data is null", {TORNASOLE_FLOAT32, 2, kShape, NULL, NULL}},
      {"data is null", {TORNASOLE_FLOAT32, 0, NULL, NULL, NULL}},
      {"no tensor has the shape", {TORNASOLE_FLOAT32, 2, kNegative, NULL, kValues}},
      {"no tensor has the shape", {TORNASOLE_FLOAT32, 2, kHuge, NULL, kValues}},
      {"is no element type", {99, 2, kShape, NULL, kValues}},
      {"is no element type", {0, 2, kShape, NULL, kValues}},
      {"is no element type", {-1, 2, kShape, NULL, kValues}},
      {"is no element type", {257, 2, kShape, NULL, kValues}},
      {"at most 64", {TORNASOLE_FLOAT32, 65, many, NULL, kValues}},
      {"allowed: rank 1", {TORNASOLE_STRING, 2, kShape, NULL, kHole}},
      {"string 1 is null", {TORNASOLE_STRING, 1, kTwo, NULL, kHole}},
  };
  tornasole_hook_t* hook = open_with(options_for("refused"));
  const tornasole_tensor_t good = a_tensor();
  EXPECT_REFUSED(tornasole_save(hook, "loss", &good), "no step is open");
  EXPECT_REFUSED(tornasole_begin_step(hook, 9), "allowed: 0");
  EXPECT_REFUSED(tornasole_begin_step_at(hook, TORNASOLE_TRAIN, -1), "negative");
  EXPECT_REFUSED(tornasole_set_mode(hook, 0), "allowed: 1");
  EXPECT(tornasole_mode_step(hook, 12) == -1 && tornasole_last_error_code() == TORNASOLE_INVALID);
  EXPECT(tornasole_begin_step(hook, TORNASOLE_TRAIN) == TORNASOLE_OK);
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; ++i) {
    EXPECT_REFUSED(tornasole_save(hook, "loss", &kCases[i].tensor), kCases[i].error);
    EXPECT_REFUSED(tornasole_save_tensor(hook, "t", &kCases[i].tensor, NULL, 0), kCases[i].error);
  }
  EXPECT(tornasole_close(hook) == TORNASOLE_OK);
  EXPECT(report_contains(hook, "\"committed_steps\": 0"));
  tornasole_free(hook);
}

static void a_run_is_written(void) {
  tornasole_options_t* options = options_for("run");
  EXPECT(tornasole_options_set(options, "include_collections", "custom") == TORNASOLE_OK);
  EXPECT(tornasole_options_set(options, "eval.save_interval", "2") == TORNASOLE_OK);
  EXPECT(tornasole_options_set(options, "worker", "rank.0") == TORNASOLE_OK);
  tornasole_hook_t* hook = open_with(options);
  EXPECT(tornasole_step(hook) == -1 && tornasole_last_saved_step(hook) == -1);
  EXPECT(tornasole_mode(hook) == TORNASOLE_GLOBAL);
  EXPECT(strcmp(tornasole_worker(hook), "rank.0") == 0);
  EXPECT(strcmp(tornasole_out_dir(hook), in_root("run")) == 0);

  EXPECT(tornasole_collection_include(hook, "custom", "^in_|texts|_input_|_output_|grid") == TORNASOLE_OK);
  EXPECT(tornasole_collection_exclude(hook, "custom", "secret") == TORNASOLE_OK);
  EXPECT(tornasole_collection_add(hook, "custom", "by_name") == TORNASOLE_OK);
  EXPECT_REFUSED(tornasole_collection_include(hook, "custom", "("), "(");
  EXPECT_REFUSED(tornasole_collection_include(hook, "", "x"), "collection name");
  EXPECT(tornasole_prepare(hook) == TORNASOLE_OK);
  char* text = tornasole_collection_json(hook, "custom");
  EXPECT(text != NULL && strstr(text, "\"exclude_regex\": [\"secret\"]") != NULL);
  EXPECT(text != NULL && strstr(text, "by_name") != NULL);
  tornasole_text_free(text);
  text = tornasole_collection_names_json(hook);
  EXPECT(text != NULL && strstr(text, "\"custom\"") != NULL && strstr(text, "\"weights\"") != NULL);
  tornasole_text_free(text);
  EXPECT(tornasole_collection_json(hook, "nobody") == NULL);
  EXPECT(tornasole_last_error_code() == TORNASOLE_NOT_FOUND);
  EXPECT(tornasole_last_error_kind() == TORNASOLE_KIND_BAD_COLLECTION);

  static const char* const kTexts[] = {"one", "", "dr\xc3\xa9i"};
  static const int64_t kThree[] = {3};
  static const int64_t kTransposed[] = {3, 2};
  static const int64_t kStrides[] = {4, 12};
  static const char* const kCollections[] = {"extra", "custom"};
  const tornasole_tensor_t grid = a_tensor();
  const tornasole_tensor_t transposed = {TORNASOLE_FLOAT32, 2, kTransposed, kStrides, kValues};
  const tornasole_tensor_t texts = {TORNASOLE_STRING, 1, kThree, NULL, kTexts};
  const tornasole_tensor_t number = {TORNASOLE_FLOAT32, 0, NULL, NULL, kValues};
  for (int i = 0; i < 3; ++i) {
    EXPECT(tornasole_begin_step(hook, TORNASOLE_TRAIN) == TORNASOLE_OK);
    EXPECT(tornasole_wants(hook, "in_a") == 1);
    EXPECT(tornasole_wants(hook, "in_secret") == 0);
    EXPECT(tornasole_save(hook, "in_a", &grid) == TORNASOLE_OK);
    EXPECT(tornasole_save(hook, "in_secret", &grid) == TORNASOLE_OK);
    EXPECT(tornasole_save(hook, "in_t", &transposed) == TORNASOLE_OK);
    EXPECT(tornasole_save(hook, "texts", &texts) == TORNASOLE_OK);
    EXPECT(tornasole_save(hook, "by_name", &number) == TORNASOLE_OK);
    EXPECT(tornasole_save_input(hook, "relu", &number) == TORNASOLE_OK);
    EXPECT(tornasole_save_input(hook, "relu", &number) == TORNASOLE_OK);
    EXPECT(tornasole_save_output(hook, "relu", &number) == TORNASOLE_OK);
    EXPECT(tornasole_save_tensor(hook, "grid", &grid, NULL, 0) == TORNASOLE_OK);
    EXPECT(tornasole_save_tensor(hook, "listed", &grid, kCollections, 2) == TORNASOLE_OK);
    EXPECT(tornasole_save_scalar(hook, "accuracy", 0.5) == TORNASOLE_OK);
    EXPECT(tornasole_save_scalar_at(hook, "timed", 0.25, 1700000000.5, 1) == TORNASOLE_OK);
    EXPECT(tornasole_set_facts(hook, "{\"optimizer_step\": 41, \"training\": true, \"grad_scale\": 1024}") ==
           TORNASOLE_OK);
    EXPECT(tornasole_end_step(hook) == TORNASOLE_OK);
    EXPECT(tornasole_end_step(hook) == TORNASOLE_OK);
  }
  EXPECT(tornasole_set_mode(hook, TORNASOLE_EVAL) == TORNASOLE_OK);
  for (int i = 0; i < 2; ++i) {
    EXPECT(tornasole_begin_step(hook, TORNASOLE_CURRENT_MODE) == TORNASOLE_OK);
    EXPECT(tornasole_mode(hook) == TORNASOLE_EVAL);
    EXPECT(tornasole_save(hook, "in_a", &grid) == TORNASOLE_OK); /* the second is not due */
  }
  EXPECT(tornasole_mode_step(hook, TORNASOLE_EVAL) == 1);
  EXPECT(tornasole_begin_step_at(hook, TORNASOLE_TRAIN, 70) == TORNASOLE_OK);
  EXPECT(tornasole_save(hook, "in_a", &grid) == TORNASOLE_OK);
  EXPECT(tornasole_step(hook) == 70);
  EXPECT(tornasole_stop_requested(hook) == 0);
  EXPECT(tornasole_close(hook) == TORNASOLE_OK);
  EXPECT(tornasole_last_saved_step(hook) == 70);
  EXPECT_REFUSED(tornasole_save(hook, "in_a", &grid), "no step is open");
  EXPECT(report_contains(hook, "\"committed_steps\": 5"));
  EXPECT(report_contains(hook, "\"dropped_steps\": {}, \"dropped_values\": {}"));
  EXPECT(report_contains(hook, "{\"name\": \"custom\", \"saved\": true"));
  EXPECT(tornasole_close(hook) == TORNASOLE_OK);
  tornasole_free(hook);

  const char* index = "index/000000000/000000000001_rank.0.json";
  EXPECT(exists("run", "training_job_end.ts"));
  EXPECT(exists("run", "index/000000000/000000000003_rank.0.json"));
  EXPECT(!exists("run", "index/000000000/000000000004_rank.0.json"));
  EXPECT(exists("run", "index/000000000/000000000070_rank.0.json"));
  static const char* const kNames[] = {"in_a",         "in_t",          "texts", "by_name", "relu_input_0",
                                       "relu_input_1", "relu_output_0", "grid",  "listed",  "scalar/accuracy",
                                       "scalar/timed"};
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"tensorname\": \"%s\"", kNames[i]);
    EXPECT(file_contains("run", index, quoted));
  }
  char* whole_index = read_file("run", index);
  EXPECT(strstr(whole_index, "secret") == NULL);
  free(whole_index);
  EXPECT(file_contains("run", index, "\"optimizer_step\": 41"));
  EXPECT(file_contains("run", index, "\"grad_scale\": 1024.0"));
}

static void a_collection_can_be_configured(void) {
  tornasole_options_t* options = options_for("configured");
  EXPECT(tornasole_options_set(options, "include_collections", "c") == TORNASOLE_OK);
  tornasole_hook_t* hook = open_with(options);
  EXPECT(tornasole_collection_add(hook, "c", "x") == TORNASOLE_OK);
  EXPECT_REFUSED(tornasole_collection_configure(hook, "c", "{\"save_interval\": 0}"), "at least 1");
  EXPECT_REFUSED(tornasole_collection_configure(hook, "c", "{\"save_intervals\": 1}"), "save_interval");
  EXPECT_REFUSED(tornasole_collection_configure(hook, "c", "{\"reductions\": \"avg\"}"), "avg");
  EXPECT_REFUSED(tornasole_collection_configure(hook, "c", "3"), "allowed: an object");
  EXPECT_REFUSED(tornasole_collection_configure(hook, "c", "{"), "not JSON");
  EXPECT(tornasole_collection_configure(hook, "c",
                                        "{\"save_interval\": 2, \"train.save_steps\": [1], \"reductions\": "
                                        "[\"min\", \"abs_l2\"], \"save_shape\": true, \"save_histogram\": false}") ==
         TORNASOLE_OK);
  const tornasole_tensor_t tensor = a_tensor();
  for (int i = 0; i < 3; ++i) {
    EXPECT(tornasole_begin_step(hook, i == 2 ? TORNASOLE_EVAL : TORNASOLE_TRAIN) == TORNASOLE_OK);
    EXPECT(tornasole_save(hook, "x", &tensor) == TORNASOLE_OK);
  }
  EXPECT(tornasole_close(hook) == TORNASOLE_OK);
  tornasole_free(hook);
  const char* index = "index/000000000/000000000001_worker_0.json";
  EXPECT(exists("configured", "index/000000000/000000000000_worker_0.json"));
  EXPECT(file_contains("configured", index, "smdebug/reductions/min/x"));
  EXPECT(file_contains("configured", index, "smdebug/reductions/abs_l2/x"));
  EXPECT(file_contains("configured", index, "\"shape\": [2, 3]"));
  EXPECT(exists("configured", "index/000000000/000000000002_worker_0.json"));
  EXPECT(file_contains("configured", "collections/000000000/worker_0_collections.json", "\"save_steps\": [1]"));
}

static void the_model_is_described(void) {
  static const struct {
    const char *json, *error;
  } kBad[] = {
      {"", "not JSON"},
      {"[]", "allowed: an object"},
      {"{\"module\": {}}", "'module' is not known"},
      {"{\"modules\": {\"fc\": {\"class\": 3}}}", "a text"},
      {"{\"modules\": []}", "an object"},
      {"{\"inputs\": {}}", "a list"},
      {"{\"parameters\": {\"w\": {\"shape\": [\"a\"]}}}", "an integer"},
      {"{\"optimizers\": [{\"hyperparameters\": {\"lr\": \"fast\"}}]}", "model.optimizers"},
      {"{\"losses\": [{\"kind\": \"x\"}]}", "'kind' is not known"},
      {"{\"bounds\": {\"x\": [1]}}", "allowed: [low, high]"},
      {"{\"bounds\": {\"x\": [1, \"far\"]}}", "model.bounds"},
      {"{\"bounds\": {\"x\": [1, -1]}}", "two numbers in order"},
  };
  tornasole_hook_t* hook = open_with(options_for("model"));
  for (size_t i = 0; i < sizeof kBad / sizeof *kBad; ++i) {
    EXPECT_REFUSED(tornasole_describe_model(hook, kBad[i].json), kBad[i].error);
  }
  EXPECT_REFUSED(tornasole_set_facts(hook, "{\"optimizer_steps\": 1}"), "optimizer_step");
  EXPECT_REFUSED(tornasole_set_facts(hook, "{\"training\": \"perhaps\"}"), "training");
  EXPECT(
      tornasole_describe_model(
          hook,
          "{\"modules\": {\"fc1\": {\"class\": \"Linear\", \"parent\": \"\", \"call_order\": 0, \"training\": false}},"
          " \"parameters\": {\"fc1.weight\": {\"module\": \"fc1\", \"shape\": [2, 3], \"dtype\": \"float32\","
          " \"requires_grad\": true, \"tied\": [\"fc2.weight\"]}},"
          " \"losses\": [{\"name\": \"nll\", \"class\": \"NLLLoss\", \"predictions\": [\"p\"], \"labels\": [\"y\"]}],"
          " \"inputs\": [\"x\"], \"optimizers\": [{\"class\": \"SGD\", \"hyperparameters\": {\"lr\": 0.125},"
          " \"groups\": [[\"fc1.weight\"], []]}], \"bounds\": {\"x\": [-1, null]}, \"data\": {\"train\": \"training\"},"
          " \"versions\": {\"mine\": \"1.2\"}, \"device\": \"cpu\", \"world_size\": 7}") == TORNASOLE_OK);
  const tornasole_tensor_t tensor = a_tensor();
  EXPECT(tornasole_begin_step(hook, TORNASOLE_TRAIN) == TORNASOLE_OK);
  EXPECT(tornasole_save_tensor(hook, "x", &tensor, NULL, 0) == TORNASOLE_OK);
  EXPECT(tornasole_close(hook) == TORNASOLE_OK);
  tornasole_free(hook);
  static const char* const kParts[] = {"\"fc1\": {\"class\": \"Linear\"",
                                       "\"training\": false",
                                       "\"shape\": [2, 3]",
                                       "\"tied\": [\"fc2.weight\"]",
                                       "\"class\": \"NLLLoss\"",
                                       "\"labels\": [\"y\"]",
                                       "\"inputs\": [\"x\"]",
                                       "\"lr\": 0.125",
                                       "[[\"fc1.weight\"], []]",
                                       "\"train\": \"training\"",
                                       "\"device\": \"cpu\"",
                                       "\"world_size\": 1",
                                       "\"bounds\": {\"x\": [-1.0, null]}"};
  for (size_t i = 0; i < sizeof kParts / sizeof *kParts; ++i) {
    EXPECT(file_contains("model", "tornasole/worker_0_model.json", kParts[i]));
  }
}

static void a_failed_run_says_so(void) {
  tornasole_hook_t* hook = open_with(options_for("failed"));
  const tornasole_tensor_t tensor = a_tensor();
  messages = 0;
  EXPECT(tornasole_begin_step(hook, TORNASOLE_TRAIN) == TORNASOLE_OK);
  EXPECT(tornasole_save_tensor(hook, "x", &tensor, NULL, 0) == TORNASOLE_OK);
  EXPECT_REFUSED(tornasole_fail(hook, NULL), "reason is null");
  EXPECT(tornasole_fail(hook, "out of cheese") == TORNASOLE_OK);
  tornasole_free(hook);
  EXPECT(file_contains("failed", "tornasole/worker_0_health.json", "out of cheese"));
  EXPECT(file_contains("failed", "index/000000000/000000000000_worker_0.json", "\"partial\": true"));
}

static void the_flight_recorder_is_dumped(void) {
  tornasole_options_t* options = options_for("recorder");
  EXPECT(tornasole_options_set(options, "save_interval", "100") == TORNASOLE_OK);
  EXPECT(tornasole_options_set(options, "flight_recorder_steps", "2") == TORNASOLE_OK);
  EXPECT(tornasole_options_set(options, "include_regex", "^x$") == TORNASOLE_OK);
  tornasole_hook_t* hook = open_with(options);
  const tornasole_tensor_t tensor = a_tensor();
  for (int i = 0; i < 6; ++i) {
    EXPECT(tornasole_begin_step(hook, TORNASOLE_TRAIN) == TORNASOLE_OK);
    EXPECT(tornasole_save(hook, "x", &tensor) == TORNASOLE_OK);
    EXPECT(tornasole_end_step(hook) == TORNASOLE_OK);
  }
  EXPECT(tornasole_dump_flight_recorder(hook) == TORNASOLE_OK);
  EXPECT(tornasole_close(hook) == TORNASOLE_OK);
  tornasole_free(hook);
  EXPECT(!exists("recorder", "index/000000000/000000000003_worker_0.json"));
  EXPECT(exists("recorder", "index/000000000/000000000004_worker_0.json"));
  EXPECT(file_contains("recorder", "index/000000000/000000000005_worker_0.json", "smdebug/reductions/mean/x"));
}

static void a_configuration_file_is_used(void) {
  FILE* file = fopen(in_root("config.json"), "w");
  fprintf(file, "{\"LocalPath\": \"%s/from_file\", \"HookParameters\": {\"save_interval\": \"1\", ", root);
  fprintf(file, "\"include_regex\": \"^x$\"}}");
  fclose(file);
  tornasole_options_t* options = tornasole_options_new();
  EXPECT(tornasole_options_set_log(options, NULL, NULL) == TORNASOLE_OK);
  EXPECT(tornasole_options_set(options, "framework", "pytorch") == TORNASOLE_OK);
  tornasole_hook_t* hook = tornasole_open_file(in_root("config.json"), options);
  tornasole_options_free(options);
  EXPECT(hook != NULL);
  if (hook == NULL) return;
  const tornasole_tensor_t tensor = a_tensor();
  EXPECT(tornasole_begin_step(hook, TORNASOLE_TRAIN) == TORNASOLE_OK);
  EXPECT(tornasole_save(hook, "x", &tensor) == TORNASOLE_OK);
  tornasole_free(hook); /* closes it */
  EXPECT(exists("from_file", "training_job_end.ts"));
  EXPECT(file_contains("from_file", "collections/000000000/worker_0_collections.json", "\"tensor_names\": [\"x\"]"));
}

static void messages_reach_the_log_function(void) {
  tornasole_options_t* options = options_for("logged");
  EXPECT(tornasole_options_set(options, "include_regex", "^nothing_has_this_name$") == TORNASOLE_OK);
  messages = 0;
  tornasole_hook_t* hook = open_with(options);
  const tornasole_tensor_t tensor = a_tensor();
  EXPECT(tornasole_begin_step(hook, TORNASOLE_TRAIN) == TORNASOLE_OK);
  EXPECT(tornasole_save(hook, "x", &tensor) == TORNASOLE_OK);
  EXPECT(tornasole_close(hook) == TORNASOLE_OK);
  tornasole_free(hook);
  EXPECT(messages > 0);
}

/* ---- */

static int remove_entry(const char* path, const struct stat* entry, int type, struct FTW* walk) {
  (void)entry;
  (void)type;
  (void)walk;
  return remove(path);
}

static void statistics_need_no_hook(void) {
  const float values[] = {3, -4, 0, NAN};
  const int64_t shape[] = {3};
  const tornasole_tensor_t tensor = {TORNASOLE_FLOAT32, 1, shape, NULL, values};
  const char* const names[] = {"l2", "mean", "zeros", "count", "subnormal"};
  double found[5] = {0};
  int is_defined[5] = {0};
  EXPECT(tornasole_stats(&tensor, names, 5, found, is_defined) == TORNASOLE_OK);
  EXPECT(found[0] == 5 && found[2] == 1 && found[3] == 3 && found[4] == 0);
  EXPECT(fabs(found[1] + 1.0 / 3) < 1e-6);
  EXPECT(is_defined[0] == 1 && is_defined[4] == 1);

  const int64_t none[] = {0};
  const tornasole_tensor_t empty = {TORNASOLE_FLOAT32, 1, none, NULL, values};
  const char* const smallest[] = {"min"};
  EXPECT(tornasole_stats(&empty, smallest, 1, found, is_defined) == TORNASOLE_OK);
  EXPECT(is_defined[0] == 0 && isnan(found[0]));

  const char* const unknown[] = {"meen"};
  EXPECT_REFUSED(tornasole_stats(&tensor, unknown, 1, found, NULL), "meen");
  const char* const null_name[] = {NULL};
  EXPECT_REFUSED(tornasole_stats(&tensor, null_name, 1, found, NULL), "name 0");
  EXPECT_REFUSED(tornasole_stats(NULL, names, 1, found, NULL), "tensor");
  EXPECT_REFUSED(tornasole_stats(&tensor, names, 1, NULL, NULL), "values");
}

int main(void) {
  const char* temporary = getenv("TMPDIR");
  snprintf(root, sizeof root, "%s/tornasole-c-XXXXXX", temporary == NULL ? "/tmp" : temporary);
  if (mkdtemp(root) == NULL) {
    perror(root);
    return 1;
  }
  the_library_names_itself_and_its_codes();
  every_option_is_known_by_its_name();
  what_cannot_be_opened_says_why();
  null_arguments_are_errors();
  tensors_that_cannot_be_are_refused();
  a_run_is_written();
  a_collection_can_be_configured();
  the_model_is_described();
  a_failed_run_says_so();
  the_flight_recorder_is_dumped();
  a_configuration_file_is_used();
  messages_reach_the_log_function();
  statistics_need_no_hook();
  if (nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0) perror(root);
  if (failures == 0) printf("c_api_test: all passed\n");
  return failures == 0 ? 0 : 1;
}

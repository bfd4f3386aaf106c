#ifndef TORNASOLE_C_H
#define TORNASOLE_C_H

/* The C interface of tornasole: what tornasole/hook.h offers, for C and for every language that can call C.
 *
 *   tornasole_options_t* options = tornasole_options_new();
 *   tornasole_options_set(options, "out_dir", "runs/mnist");
 *   tornasole_options_set(options, "save_interval", "100");
 *   tornasole_hook_t* hook = tornasole_open(options);
 *   tornasole_options_free(options);
 *   if (hook == NULL) return fail(tornasole_last_error());
 *   for (...) {
 *     tornasole_begin_step(hook, TORNASOLE_TRAIN);
 *     tornasole_save(hook, "loss", &loss);
 *     tornasole_end_step(hook);
 *   }
 *   tornasole_close(hook);
 *   tornasole_free(hook);
 *
 * Errors: a call that can refuse returns TORNASOLE_OK or a code; one that returns a pointer, NULL. What was wrong is
 * then told by tornasole_last_error, to the thread that called. A null or impossible argument is such an error, never
 * a crash. What goes wrong in capture itself (a full disk, a full queue) is no error of the call: it is counted,
 * logged once per cause, written into the run and returned by tornasole_report_json. No exception leaves a call.
 *
 * Threads: as in hook.h. Any thread may call anything on one hook, except tornasole_free; one thread at a time begins
 * and ends steps. An options handle belongs to one thread at a time.
 *
 * Texts passed in are UTF-8, end with a zero byte and are copied. Texts returned as `char*` belong to the caller, who
 * gives them to tornasole_text_free; those returned as `const char*` belong to the handle they were asked of. */

#include <stddef.h>
#include <stdint.h>

#include "tornasole/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- numbers; they never change */

/* What the caller should do next. */
typedef int32_t tornasole_code_t;
enum {
  TORNASOLE_OK = 0,
  TORNASOLE_INVALID = 1,    /* correct the call or the configuration */
  TORNASOLE_NOT_FOUND = 2,  /* stop asking: there is no such thing */
  TORNASOLE_ENDED = 3,      /* stop asking: the run is over */
  TORNASOLE_NOT_YET = 4,    /* ask again later */
  TORNASOLE_CORRUPT = 5,    /* damaged */
  TORNASOLE_IO = 6,         /* maybe retry */
  TORNASOLE_UNSUPPORTED = 7 /* give up */
};

/* What sort of mistake it was: which exception a binding raises. */
typedef int32_t tornasole_kind_t;
enum {
  TORNASOLE_KIND_BASE = 0,
  TORNASOLE_KIND_TYPE = 1,
  TORNASOLE_KIND_VALUE = 2,
  TORNASOLE_KIND_RUNTIME = 3,
  TORNASOLE_KIND_NOT_IMPLEMENTED = 4,
  TORNASOLE_KIND_BAD_COLLECTION = 5,
  TORNASOLE_KIND_FILE_NOT_FOUND = 6
};

/* What the program is doing; the numbers are those on disk. */
typedef int32_t tornasole_mode_t;
enum {
  TORNASOLE_CURRENT_MODE = 0, /* for tornasole_begin_step: the one set before */
  TORNASOLE_TRAIN = 1,
  TORNASOLE_EVAL = 2,
  TORNASOLE_PREDICT = 3,
  TORNASOLE_GLOBAL = 4 /* before any was set */
};

/* Element types; the numbers are those on disk. */
typedef int32_t tornasole_dtype_t;
enum {
  TORNASOLE_FLOAT32 = 1,
  TORNASOLE_FLOAT64 = 2,
  TORNASOLE_INT32 = 3,
  TORNASOLE_UINT8 = 4,
  TORNASOLE_INT16 = 5,
  TORNASOLE_INT8 = 6,
  TORNASOLE_STRING = 7,
  TORNASOLE_COMPLEX64 = 8,
  TORNASOLE_INT64 = 9,
  TORNASOLE_BOOL = 10, /* one byte, 0 or 1 */
  TORNASOLE_BFLOAT16 = 14,
  TORNASOLE_UINT16 = 17,
  TORNASOLE_COMPLEX128 = 18,
  TORNASOLE_FLOAT16 = 19,
  TORNASOLE_UINT32 = 22,
  TORNASOLE_UINT64 = 23,
  TORNASOLE_FLOAT8_E5M2 = 24,
  TORNASOLE_FLOAT8_E4M3FN = 25
};

typedef int32_t tornasole_log_level_t;
enum { TORNASOLE_DEBUG = 0, TORNASOLE_INFO = 1, TORNASOLE_WARNING = 2, TORNASOLE_ERROR = 3 };

/* ---- the library, errors and texts */

/* The version of the library that is loaded: "0.1.0". */
TORNASOLE_EXPORT const char* tornasole_version(void);

/* The last error of a call of this thread. Empty, TORNASOLE_OK and TORNASOLE_KIND_BASE if there was none. A call that
 * succeeds leaves it as it is. The text is valid until the next error of this thread. */
TORNASOLE_EXPORT const char* tornasole_last_error(void);
TORNASOLE_EXPORT tornasole_code_t tornasole_last_error_code(void);
TORNASOLE_EXPORT tornasole_kind_t tornasole_last_error_kind(void);
/* "ok", "invalid", "not found", ...; "unknown" for another number. */
TORNASOLE_EXPORT const char* tornasole_code_name(tornasole_code_t code);
TORNASOLE_EXPORT void tornasole_text_free(char* text); /* NULL is allowed */

/* ---- options */

typedef struct tornasole_options tornasole_options_t;

/* NULL only when there is no memory. */
TORNASOLE_EXPORT tornasole_options_t* tornasole_options_new(void);
TORNASOLE_EXPORT void tornasole_options_free(tornasole_options_t* options); /* NULL is allowed */

/* Sets one option, by its name in tornasole/options.h, as text: "true", "100", "drop"; a list is separated by commas.
 *
 *   where      out_dir, tensorboard_dir, export_tensorboard, dry_run
 *   what       save_all, include_regex, include_collections
 *   form       reductions ("min, abs_max, l2"), save_raw_tensor, save_shape
 *   when       save_interval, start_step, end_step, save_steps, when_nan; each also for one mode: "eval.save_interval".
 *              A mode takes from the fields without a mode what it does not set itself
 *   who        include_workers ("one", "all"), rank, world_size, worker, framework ("cpp", "pytorch", "mxnet",
 *              "tensorflow", "xgboost"), framework_version
 *   engine     fsync, when_full, queue_bytes, and all others of HookOptions
 *
 * A name that does not exist and a text that cannot be read are errors; ranges are checked by tornasole_open. */
TORNASOLE_EXPORT tornasole_code_t tornasole_options_set(tornasole_options_t* options, const char* name,
                                                        const char* value);
/* Appends one item to a list (include_regex, include_collections, when_nan, derived, rules), commas included. */
TORNASOLE_EXPORT tornasole_code_t tornasole_options_add(tornasole_options_t* options, const char* name,
                                                        const char* item);
/* The same options as members of one JSON object; null leaves an option alone. Nothing is set if one is wrong. */
TORNASOLE_EXPORT tornasole_code_t tornasole_options_set_json(tornasole_options_t* options, const char* json);

/* Called with every message, from any thread, one at a time; must not call tornasole. A null function is silence;
 * without this call warnings and errors go to standard error. `user` has to outlive the hooks opened with it. */
typedef void (*tornasole_log_fn)(tornasole_log_level_t level, const char* message, void* user);
TORNASOLE_EXPORT tornasole_code_t tornasole_options_set_log(tornasole_options_t* options, tornasole_log_fn log,
                                                            void* user);

/* ---- a hook */

typedef struct tornasole_hook tornasole_hook_t;

/* Checks everything that can be checked before the first write. NULL on error. The options stay the caller's. */
TORNASOLE_EXPORT tornasole_hook_t* tornasole_open(const tornasole_options_t* options);
/* From a JSON configuration: `path`, or NULL for the one the environment names. `options` gives what a file cannot:
 * framework, rank, log; NULL for none. */
TORNASOLE_EXPORT tornasole_hook_t* tornasole_open_file(const char* path, const tornasole_options_t* options);
/* Closes the hook if that was not done, and frees it. NULL is allowed. */
TORNASOLE_EXPORT void tornasole_free(tornasole_hook_t* hook);

/* Ends the open step, waits up to close_wait_s for the queue, writes the end marker. The first failure of the run, if
 * any. The hook can still be asked; steps and values that come later are ignored. */
TORNASOLE_EXPORT tornasole_code_t tornasole_close(tornasole_hook_t* hook);
/* The same for a run that ended by an error: the open step is marked partial, the run recorded as failed. */
TORNASOLE_EXPORT tornasole_code_t tornasole_fail(tornasole_hook_t* hook, const char* reason);

/* ---- steps */

/* Starts the next step of the mode, ending the one that is open. */
TORNASOLE_EXPORT tornasole_code_t tornasole_begin_step(tornasole_hook_t* hook, tornasole_mode_t mode);
/* The same with a number chosen by the caller, as boosting rounds have one. */
TORNASOLE_EXPORT tornasole_code_t tornasole_begin_step_at(tornasole_hook_t* hook, tornasole_mode_t mode, int64_t step);
/* Ends the open step: it is published as soon as it is written. Without an open step nothing happens. */
TORNASOLE_EXPORT tornasole_code_t tornasole_end_step(tornasole_hook_t* hook);
/* Ends the open step and changes the mode, without starting a step. */
TORNASOLE_EXPORT tornasole_code_t tornasole_set_mode(tornasole_hook_t* hook, tornasole_mode_t mode);
/* Checks and compiles what the collections ask for. The first step does it otherwise, and can only report an error. */
TORNASOLE_EXPORT tornasole_code_t tornasole_prepare(tornasole_hook_t* hook);

/* ---- values */

/* A tensor that belongs to the caller; it is read during the call and never kept. */
typedef struct tornasole_tensor {
  tornasole_dtype_t dtype;
  uint32_t rank;                /* dimensions; 0 for a single element without any */
  const int64_t* shape;         /* `rank` extents, outermost first */
  const int64_t* strides_bytes; /* `rank` of them, zero and negative ones included; NULL: row-major without gaps */
  const void* data;             /* the first element; for TORNASOLE_STRING `const char* const*`, and rank is 1 */
} tornasole_tensor_t;

/* Offers a tensor to the open step; the collections decide whether and in what form it is saved. Without an open step
 * the call is an error. */
TORNASOLE_EXPORT tornasole_code_t tornasole_save(tornasole_hook_t* hook, const char* name,
                                                 const tornasole_tensor_t* tensor);
/* An input or output of a module, named <module>_input_<i> or <module>_output_<i>. */
TORNASOLE_EXPORT tornasole_code_t tornasole_save_input(tornasole_hook_t* hook, const char* module,
                                                       const tornasole_tensor_t* tensor);
TORNASOLE_EXPORT tornasole_code_t tornasole_save_output(tornasole_hook_t* hook, const char* module,
                                                        const tornasole_tensor_t* tensor);
/* Saved in the open step, or in the next, if one of these collections is due; they are created and included if need
 * be. No collections (count 0) means "default". */
TORNASOLE_EXPORT tornasole_code_t tornasole_save_tensor(tornasole_hook_t* hook, const char* name,
                                                        const tornasole_tensor_t* tensor,
                                                        const char* const* collections, size_t collection_count);
/* Kept until a step is saved, then stored in it as scalar/<name>, whatever the schedules say. */
TORNASOLE_EXPORT tornasole_code_t tornasole_save_scalar(tornasole_hook_t* hook, const char* name, double value);
/* The same with a time (seconds since 1970) and, if sm_metric is not 0, a line in the SageMaker metrics file. */
TORNASOLE_EXPORT tornasole_code_t tornasole_save_scalar_at(tornasole_hook_t* hook, const char* name, double value,
                                                           double timestamp, int sm_metric);
/* 1 if a tensor of this name would be saved or watched in the open step, so that it is worth making; else 0. */
TORNASOLE_EXPORT int tornasole_wants(tornasole_hook_t* hook, const char* name);

/* Statistics of a tensor, without a hook: names[i] is one of count min max mean std variance median sum prod l1 l2, the
 * abs_ forms, zeros nan inf pos_inf neg_inf first_non_finite subnormal at_max (tornasole/stats.h); values[i] gets the
 * number. is_defined[i], unless NULL, gets 0 for what is not defined for the type or for no elements, and values[i] is
 * NaN then. */
TORNASOLE_EXPORT tornasole_code_t tornasole_stats(const tornasole_tensor_t* tensor, const char* const* names,
                                                  size_t count, double* values, int* is_defined);

/* ---- collections: the one of that name, created empty if there is none; changes count from the next step on */

TORNASOLE_EXPORT tornasole_code_t tornasole_collection_include(tornasole_hook_t* hook, const char* collection,
                                                               const char* pattern);
TORNASOLE_EXPORT tornasole_code_t tornasole_collection_exclude(tornasole_hook_t* hook, const char* collection,
                                                               const char* pattern);
TORNASOLE_EXPORT tornasole_code_t tornasole_collection_add(tornasole_hook_t* hook, const char* collection,
                                                           const char* tensor_name);
/* One JSON object with any of: save_interval, start_step, end_step, save_steps, when_nan (each also as
 * "train.save_interval" and so on), reductions, save_raw_tensor, save_shape, save_histogram. What it says about the
 * schedule replaces the whole schedule, what it says about the form the whole form. */
TORNASOLE_EXPORT tornasole_code_t tornasole_collection_configure(tornasole_hook_t* hook, const char* collection,
                                                                 const char* json);
/* {"name": ..., "include_regex": [...], "exclude_regex": [...], "tensor_names": [...]}; NULL if there is none. */
TORNASOLE_EXPORT char* tornasole_collection_json(tornasole_hook_t* hook, const char* collection);
/* A JSON list of all names. */
TORNASOLE_EXPORT char* tornasole_collection_names_json(tornasole_hook_t* hook);

/* ---- what the values cannot tell */

/* The model as JSON, in the form of the model file (docs/format.md): modules, parameters, losses, inputs, optimizers,
 * bounds, data, versions, device; all of them optional. */
TORNASOLE_EXPORT tornasole_code_t tornasole_describe_model(tornasole_hook_t* hook, const char* json);
/* Facts about the open step: one JSON object with any of optimizer_step, training, grad_enabled, backward_in_eval,
 * grad_scale. They replace those given before. */
TORNASOLE_EXPORT tornasole_code_t tornasole_set_facts(tornasole_hook_t* hook, const char* json);
/* Writes what the flight recorder holds, as steps of their own. */
TORNASOLE_EXPORT tornasole_code_t tornasole_dump_flight_recorder(tornasole_hook_t* hook);

/* ---- questions; with a null hook 0, -1 or NULL, and an error */

/* 1 if somebody asked the training to stop (stop_request.json), seen at a saved step. */
TORNASOLE_EXPORT int tornasole_stop_requested(tornasole_hook_t* hook);
TORNASOLE_EXPORT tornasole_mode_t tornasole_mode(tornasole_hook_t* hook);
TORNASOLE_EXPORT int64_t tornasole_step(tornasole_hook_t* hook); /* global; -1 before the first */
TORNASOLE_EXPORT int64_t tornasole_mode_step(tornasole_hook_t* hook, tornasole_mode_t mode); /* -1 before the first */
TORNASOLE_EXPORT int64_t tornasole_last_saved_step(tornasole_hook_t* hook);                  /* -1 if none */
TORNASOLE_EXPORT const char* tornasole_out_dir(tornasole_hook_t* hook);
TORNASOLE_EXPORT const char* tornasole_worker(tornasole_hook_t* hook);
/* What capture did so far, as one JSON object with the members of CaptureReport in tornasole/hook.h. */
TORNASOLE_EXPORT char* tornasole_report_json(tornasole_hook_t* hook);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TORNASOLE_C_H */

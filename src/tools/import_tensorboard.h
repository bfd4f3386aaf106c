#pragma once

// import_tensorboard: TensorBoard's files become a trial, for rules and queries.
//
//   curve           a tensor of one element under its tag; losses by name in the collection losses, others in metrics
//   histogram       <tag>/histogram, rows of lower edge, upper edge and count, in the collection histograms; and what
//   the
//                   file knows of all elements as stored reductions of <tag>: min, max, mean, l2, std
//   sub-directory   train, validation, ...: the mode; else a word in the tag says it (Loss/val), else it is TRAIN
//   step            the step of its mode, and the global step too. Where two modes have the same step, the global steps
//                   number all of them instead, in the order of the steps, TRAIN first
//
// Both styles are read: simple values and histograms (TensorFlow 1, PyTorch), and tensors with the metadata of a plugin
// (TensorFlow 2, Keras). Everything else in the files (pictures, texts, graphs) is counted, not read.

#include <cstdint>
#include <string>

#include "tornasole/result.h"

namespace tornasole::tools {

struct ImportOptions {
  std::string source = {};  // the directory
  std::string run = {};     // below it; empty: the only one
  std::string path = {};    // of the trial; must not exist, or be empty
};

struct ImportReport {
  std::int64_t files = 0;
  std::int64_t steps = 0;
  std::int64_t curves = 0;      // tags
  std::int64_t histograms = 0;  // tags
  std::int64_t values = 0;      // points of both
  std::int64_t left_out = 0;    // values of other kinds, and of steps below 0
  std::int64_t cut = 0;         // files that end in the middle of a record
};

// kNotFound if there are no event files, or none of the run; kInvalid if there are several runs and none was chosen, or
// the output is taken; kCorrupt names file and offset.
Result<ImportReport> import_tensorboard(const ImportOptions& options);

}  // namespace tornasole::tools

#pragma once

// Everything is hidden in the shared library but what carries this mark.
#define TORNASOLE_EXPORT __attribute__((visibility("default")))

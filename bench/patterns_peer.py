#!/usr/bin/env python3
"""The first pass of patterns_bench.cc done as a Python hook does it: for each saved collection, for each of its patterns,
re.search on the name, the answer kept per name. Prints {"names": ..., "seconds": ..., "members": ...}."""

import json
import re
import time

PARTS = ["attention.query.weight", "attention.query.bias", "attention.output.weight", "mlp.dense.weight",
         "mlp.dense.bias", "norm_output_0", "gelu_output_0", "dropout_input_0", "gradient"]


def make_names(count):
    names = []
    layer = 0
    while len(names) < count:
        prefix = f"Model_encoder.layers.{layer}."
        names += [f"gradient/{prefix}{PARTS[0]}" if part == "gradient" else prefix + part for part in PARTS]
        layer += 1
    return names[:count]


class Collection:
    def __init__(self, *patterns):
        self.patterns = list(patterns)
        self.tensor_names = set()


def any_matches(name, patterns):
    for pattern in patterns:
        if re.search(pattern, name):
            return True
    return False


def first_pass(names):
    saved = {Collection("gelu"), Collection("^(?!gradient).*weight"), Collection("^(?!gradient).*bias"),
             Collection("^gradient"), Collection("[Ll]oss_(?!input).*output")}
    collections_of = {}
    start = time.perf_counter()
    for name in names:
        if name not in collections_of:
            matched = set()
            for collection in saved:
                if name in collection.tensor_names:
                    matched.add(collection)
                elif any_matches(name, collection.patterns):
                    collection.tensor_names.add(name)
                    matched.add(collection)
            collections_of[name] = matched
    seconds = time.perf_counter() - start
    return seconds, sum(len(matched) for matched in collections_of.values())


def main():
    names = make_names(10000)
    best, members = min(first_pass(names) for _ in range(10))
    print(json.dumps({"names": len(names), "seconds": best, "members": members}))


if __name__ == "__main__":
    main()

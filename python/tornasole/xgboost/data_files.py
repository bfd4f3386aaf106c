"""Data for a hook: a ``DMatrix``, or the path and the content type of a local file."""

from __future__ import annotations

import csv
import os
from typing import Any, Optional

import numpy
from xgboost import DMatrix

from tornasole.exceptions import SMDebugError

CSV = "csv"
LIBSVM = "libsvm"
_CONTENT_TYPES = {"csv": CSV, "text/csv": CSV, "libsvm": LIBSVM, "text/libsvm": LIBSVM, "text/x-libsvm": LIBSVM}


def get_content_type(content_type_cfg_val: Optional[str]) -> str:
    """``csv`` or ``libsvm`` of what a user or a service calls it; None is ``libsvm``."""
    if content_type_cfg_val is None:
        return LIBSVM
    found = _CONTENT_TYPES.get(str(content_type_cfg_val).strip().lower())
    if found is None:
        raise SMDebugError(
            f"{content_type_cfg_val!r} is not an accepted content type; allowed: {', '.join(_CONTENT_TYPES)}"
        )
    return found


def load_data(argument: str, data: Any) -> Optional[DMatrix]:
    """What was given as an argument of this name, as a ``DMatrix``; None stays None."""
    if data is None or isinstance(data, DMatrix):
        return data
    if not isinstance(data, (tuple, list)) or len(data) != 2 or not isinstance(data[0], (str, os.PathLike)):
        raise SMDebugError(f"{argument}: {data!r} is not allowed; allowed: a DMatrix, or (path, content type)")
    path = os.path.expanduser(os.fspath(data[0]))
    content_type = get_content_type(data[1])
    if not os.path.isfile(path):
        raise SMDebugError(f"{argument}: {path} is not a local file; only local files can be read")
    return get_dmatrix(path, content_type)


def get_dmatrix(data_path: str, content_type: str, csv_weights: int = 0) -> DMatrix:
    """The ``DMatrix`` of a file. CSV: label first, then the weight if ``csv_weights`` is 1, no header."""
    content_type = get_content_type(content_type)
    validate_data_file_path(data_path, content_type)
    try:
        matrix = _read_csv(data_path, csv_weights == 1) if content_type == CSV else _read_libsvm(data_path)
    except SMDebugError:
        raise
    except Exception as error:
        raise SMDebugError(f"{data_path} cannot be read as {content_type}: {error}") from error
    if matrix.get_label().size == 0:
        raise SMDebugError(f"{data_path} has no labels")
    return matrix


def validate_data_file_path(data_path: str, content_type: Optional[str]) -> None:
    """An error if there is no such file, or if its first line is not of the content type."""
    content_type = get_content_type(content_type)
    if not os.path.exists(data_path):
        raise SMDebugError(f"{data_path}: there is no such file")
    with open(data_path, encoding="utf-8", errors="ignore") as file:
        line = next((line.strip() for line in file if line.strip()), "")
    if content_type == LIBSVM and not _is_libsvm(line):
        raise SMDebugError(f"{data_path} is not libsvm, its first line is {line[:50]!r}: <label> <index>:<value> ...")
    if content_type == CSV and ":" in line and _is_libsvm(line):
        raise SMDebugError(f"{data_path} is not csv but libsvm, its first line is {line[:50]!r}")


def _is_libsvm(line: str) -> bool:
    label, *features = line.split()[:20] or [""]
    numbers = label.split(":")
    if features and features[0].startswith("qid:"):
        features = features[1:]
    parts = [feature.split(":") for feature in features]
    try:
        return len(numbers) <= 2 and all(len(p) == 2 for p in parts) and bool([*map(float, numbers + sum(parts, []))])
    except ValueError:
        return False


def _delimiter(line: str) -> str:
    try:
        return csv.Sniffer().sniff(line, delimiters=",;\t |").delimiter
    except csv.Error:
        return ","


def _read_csv(path: str, has_weights: bool) -> DMatrix:
    with open(path, encoding="utf-8") as file:
        delimiter = _delimiter(file.readline())
    # An empty field is a missing value, as a NaN is.
    table = numpy.atleast_2d(numpy.genfromtxt(path, delimiter=delimiter, dtype=numpy.float32))
    first = 2 if has_weights else 1
    if table.shape[1] <= first or numpy.isnan(table[:, 0]).any():
        raise SMDebugError(f"{path}: a label that is a number, then the features, is wanted in each line")
    return DMatrix(table[:, first:], label=table[:, 0], weight=table[:, 1] if has_weights else None)


def _read_libsvm(path: str) -> DMatrix:
    """``<label>[:<weight>] [qid:<group>] <index>:<value> ...`` in each line; what is not listed is missing."""
    from scipy.sparse import csr_matrix  # XGBoost depends on it

    labels, weights, groups, values, indices, ends = [], [], [], [], [], [0]
    with open(path, encoding="utf-8") as file:
        for line in file:
            label, *features = line.partition("#")[0].split() or [""]
            if not label:
                continue
            label, _, weight = label.partition(":")
            labels.append(float(label))
            weights += [float(weight)] if weight else []
            for index, _, value in (feature.partition(":") for feature in features):
                if index == "qid":
                    groups.append(int(value))
                else:
                    indices.append(int(index))
                    values.append(float(value))
            ends.append(len(indices))
    shape = (len(labels), max(indices, default=-1) + 1)
    matrix = DMatrix(csr_matrix((numpy.array(values, numpy.float32), indices, ends), shape=shape), label=labels)
    if weights:
        matrix.set_weight(weights)
    if groups:
        matrix.set_info(qid=groups)
    return matrix

"""Opening a trial."""

from __future__ import annotations

import os

from tornasole.analysis.utils import no_refresh, refresh
from tornasole.core.query_arguments import is_spellable
from tornasole.core.singleton_utils import wait_until_written
from tornasole.exceptions import SMDebugNotImplementedError, SMDebugTypeError
from tornasole.trials.local_trial import LocalTrial
from tornasole.trials.s3_trial import S3Trial
from tornasole.trials.trial import Trial

__all__ = ["create_trial", "no_refresh", "refresh"]

_WRITE_WAIT_S = 1.0
_DEFAULT_OUTPUT_DIR = "/opt/ml/processing/outputs/"


def create_trial(
    path: str | None = None,
    name: str | None = None,
    profiler: bool = False,
    output_dir: str = _DEFAULT_OUTPUT_DIR,
    range_steps: tuple[int | None, int | None] | None = None,
    check: bool = False,
    index_mode: bool = True,
    cache: bool = False,
    *,
    out_dir: str | None = None,
    parallel: bool = True,
    timeout: float | None = None,
    on_damage: str = "fail",
) -> Trial:
    """Opens what a run wrote to ``path`` (``out_dir`` is another name for it), once its collections files are there.

    :param path: the directory of the run, or ``s3://bucket/prefix``; white space around it is removed
    :param name: how messages call the trial; the last component of the path
    :param profiler: open the measurements of a profiler instead of tensors; not possible yet, a NotImplementedError
    :param output_dir: where reports about a profiler's measurements go
    :param range_steps: ``(begin, end)``: only global steps from ``begin`` up to, not including, ``end``
    :param check: read and verify every value now
    :param index_mode: accepted; a trial is always read through its index
    :param cache: keep values in memory after they were first read
    :param parallel: accepted, without effect
    :param timeout: seconds without a sign of life of the run after which this and later waits give up; None: never
    :param on_damage: "fail" raises at a damaged file, "skip" leaves it out and lists it in ``Trial.damage``
    """
    if (path is None) == (out_dir is None):
        raise SMDebugTypeError("create_trial takes the path of a trial, as path or as out_dir")
    place = path if path is not None else out_dir
    if isinstance(place, os.PathLike):
        place = os.fspath(place)
    if not isinstance(place, str) or not is_spellable(place):
        raise SMDebugTypeError(f"the path of a trial is a text, and {place!r} is none")
    if name is not None and not (isinstance(name, str) and is_spellable(name)):
        raise SMDebugTypeError(f"the name of a trial is a text, and {name!r} is none")
    place = place.strip()
    if profiler:
        raise SMDebugNotImplementedError(f"{place}: measurements of a profiler cannot be opened; tensors can")
    options = dict(
        range_steps=range_steps, check=check, index_mode=index_mode, cache=cache, timeout=timeout, on_damage=on_damage
    )
    if place.startswith("s3://"):
        bucket, _, prefix = place.removeprefix("s3://").partition("/")
        return S3Trial(name, bucket, prefix, **options)
    wait_until_written(place, _WRITE_WAIT_S)
    return LocalTrial(name, place, parallel=parallel, **options)

"""Trials made by hand: files as any writer of the format leaves them, and one worker at a time.

Records are framed here on their own, without the engine, so that what the engine reads was not written by it.
"""

import json
import os
import struct

import numpy

from tornasole import _engine

GLOBAL = "GLOBAL"
_DTYPES = {"float32": 1, "float64": 2, "int32": 3, "int64": 9}
_MODES = {"TRAIN": 1, "EVAL": 2, "PREDICT": 3, "GLOBAL": 4}


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(number):
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _field(number, content):
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _number(number, value):
    return _varint(number << 3) + _varint(value)


def record(name, array, step, mode, mode_step):
    """One framed record with a tensor."""
    shape = b"".join(_field(2, _number(1, extent)) for extent in array.shape)
    tensor = _number(1, _DTYPES[array.dtype.name]) + _field(2, shape) + _field(4, array.tobytes())
    plugins = b""
    for plugin, content in (("mode_step", str(mode_step)), ("mode", str(_MODES[mode]))):
        plugins += _field(1, _field(1, plugin.encode()) + _field(2, content.encode()))
    value = _field(1, name.encode()) + _field(8, tensor) + _field(9, plugins)
    payload = _varint(1 << 3 | 1) + struct.pack("<d", 1.5) + _number(2, step) + _field(5, _field(1, value))
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", masked_crc(length)) + payload + struct.pack("<I", 0x062DC0B3)


class TrialFiles:
    """Writes the files of a trial into a directory."""

    def __init__(self, path, workers=("worker_0",), collections=None):
        self.path = str(path)
        self.workers = list(workers)
        for worker in self.workers:
            self.write_collections(worker, collections or {})

    def write_collections(self, worker, collections):
        """`collections`: name -> (patterns, names)."""
        stored = {
            name: {
                "name": name,
                "include_regex": patterns,
                "tensor_names": names,
                "reduction_config": None,
                "save_config": None,
                "save_histogram": True,
            }
            for name, (patterns, names) in {"all": ([".*"], []), "default": ([], []), **collections}.items()
        }
        content = {"collections": stored, "_meta": {"num_workers": len(self.workers)}}
        self._put(f"collections/000000000/{worker}_collections.json", json.dumps(content).encode())

    def write(self, step, worker=None, tensors=None, mode=GLOBAL, mode_step=None, shapes=None, with_events=True):
        """`tensors`: name -> array or list of numbers. One index file, and the event file it speaks of."""
        worker = worker or self.workers[0]
        mode_step = step if mode_step is None else mode_step
        event_file = f"events/{step:012}/{step:012}_{worker}.tfevents"
        events, payload = b"", []
        for name, value in (tensors or {"a": [1, 2, 3]}).items():
            array = value if isinstance(value, numpy.ndarray) else numpy.array(value, dtype=numpy.float32)
            one = record(name, array, step, mode, mode_step)
            payload.append({"tensorname": name, "start_idx": len(events), "length": len(one)})
            events += one
        if with_events:
            self._put(event_file, events)
        index = {"meta": {"mode": mode, "mode_step": mode_step, "event_file_name": event_file}}
        index["tensor_payload"] = payload
        if shapes:
            index["shape_payload"] = [
                {"tensorname": name, "originalname": original, "shape": list(shape)}
                for name, (original, shape) in shapes.items()
            ]
        self._put(f"index/{step // 1000:09}/{step:012}_{worker}.json", json.dumps(index).encode())
        return events

    def write_steps(self, steps, workers=None, **content):
        for step in steps:
            for worker in workers or self.workers:
                self.write(step, worker=worker, **content)

    def end(self):
        self._put("training_job_end.ts", b"")

    def _put(self, name, content):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".tmp", "wb") as file:
            file.write(content)
        os.replace(path + ".tmp", path)


def open_hook(path):
    """A hook of the engine that saves every step whole."""
    if not hasattr(_engine.Hook, "open"):
        return _engine.Hook(str(path), save_all=True, save_interval=1)
    from tornasole.core.save_config import SaveConfig

    every_step = SaveConfig(save_interval=1)._plain()
    return _engine.Hook.open({"out_dir": str(path), "save_all": True, "save_config": every_step})

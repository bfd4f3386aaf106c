"""The types of NumPy under the names event files have for them."""

from __future__ import annotations

from tornasole.exceptions import SMDebugTypeError

_NAMES = {
    "bool": "DT_BOOL",
    "int8": "DT_INT8",
    "int16": "DT_INT16",
    "int32": "DT_INT32",
    "int64": "DT_INT64",
    "uint8": "DT_UINT8",
    "uint16": "DT_UINT16",
    "uint32": "DT_UINT32",
    "uint64": "DT_UINT64",
    "float16": "DT_HALF",
    "bfloat16": "DT_BFLOAT16",
    "float32": "DT_FLOAT",
    "float64": "DT_DOUBLE",
    "float8_e5m2": "DT_FLOAT8_E5M2",
    "float8_e4m3fn": "DT_FLOAT8_E4M3FN",
    "complex64": "DT_COMPLEX64",
    "complex128": "DT_COMPLEX128",
}
# Numbers that event files have a name for, while trials do not hold them.
_NAMED_ONLY = {
    "float8_e4m3fnuz": "DT_FLOAT8_E4M3FNUZ",
    "float8_e4m3b11fnuz": "DT_FLOAT8_E4M3B11FNUZ",
    "float8_e5m2fnuz": "DT_FLOAT8_E5M2FNUZ",
    "float4_e2m1fn": "DT_FLOAT4_E2M1FN",
    "int4": "DT_INT4",
    "uint4": "DT_UINT4",
    "int2": "DT_INT2",
    "uint2": "DT_UINT2",
}
# Quantised numbers are structures of one field, named after what they are.
_QUANTISED = {
    "qint8": "DT_QINT8",
    "quint8": "DT_QUINT8",
    "qint16": "DT_QINT16",
    "quint16": "DT_QUINT16",
    "qint32": "DT_QINT32",
}


def _get_proto_dtype(npdtype) -> tuple[bool, str]:
    """Whether the type is one of numbers, and its name in event files; texts are ``(False, "DT_STRING")``."""
    import numpy

    if getattr(npdtype, "kind", None) in ("U", "O", "S", "T"):
        return False, "DT_STRING"
    names = {**_NAMES, **_NAMED_ONLY}
    try:
        dtype = numpy.dtype(npdtype)
        name = _QUANTISED.get(dtype.names[0]) if dtype.names and len(dtype.names) == 1 else names.get(dtype.name)
        if dtype.kind in ("U", "O", "S", "T"):
            return False, "DT_STRING"
    except TypeError:
        name = None
    if name is None:
        raise SMDebugTypeError(f"{npdtype!r} cannot be saved; allowed: {', '.join(_NAMES)} and texts")
    return True, name

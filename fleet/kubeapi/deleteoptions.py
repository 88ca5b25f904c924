"""DeleteOptions as Go clients send them: protobuf, where everything else here speaks JSON.

`kubectl drain` and every typed Go client delete that way and know no fall-back. Only this one small message is read;
other protobuf bodies are refused with 415.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fleet.kubeapi.status import bad_request

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"  # k8s.io/apimachinery runtime/serializer/protobuf: prefix, then a runtime.Unknown message


def decode(body: bytes) -> dict[str, Any]:
    """`gracePeriodSeconds` and `preconditions.uid` of a DeleteOptions body; 400 when it is not one.

    Field numbers are those of apimachinery's generated.proto: Unknown.raw is 2; DeleteOptions.gracePeriodSeconds 1,
    .preconditions 2; Preconditions.uid 1.
    """
    if not body.startswith(_MAGIC):
        raise bad_request("the body is not a Kubernetes protobuf message")
    options: dict[str, Any] = {}
    try:
        raw = dict(_fields(body[len(_MAGIC) :])).get(2, b"")
        if not isinstance(raw, bytes):
            raise TypeError("no message inside")
        for number, value in _fields(raw):
            if number == 1 and isinstance(value, int):
                options["gracePeriodSeconds"] = value if value < 1 << 63 else value - (1 << 64)
            elif number == 2 and isinstance(value, bytes):
                uid = dict(_fields(value)).get(1)
                if isinstance(uid, bytes):
                    options["preconditions"] = {"uid": uid.decode()}
    except (IndexError, ValueError, TypeError) as error:
        raise bad_request(f"the body is not a DeleteOptions message: {error}") from None
    return options


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
        elif wire == 2:
            size, at = _varint(data, at)
            yield number, data[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {wire} in field {number}")

"""A program of its own that uses the GPU through the driver API, with the standard library alone.

    python tests/gpu/cuda.py watch        prints "free NUMBER" (bytes, cuMemGetInfo) every 20 ms until its input ends
    python tests/gpu/cuda.py neighbour    takes 256 MiB and gives them back, every 0.7 s, until its input ends

Source of the functions: CUDA driver API reference, "Memory Management" and "Primary Context Management".
"""

from __future__ import annotations

import ctypes
import select
import sys


class Gpu:
    """Device 0 with its primary context."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._cuda, function)(*arguments)
        if status != 0:
            raise RuntimeError(f"{function} gave CUresult {status}")

    def free_bytes(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def take(self, size_bytes: int) -> ctypes.c_uint64:
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size_bytes))
        return address

    def give_back(self, address: ctypes.c_uint64) -> None:
        self._call("cuMemFree_v2", address)


def _input_ended(after_s: float) -> bool:
    readable, _, _ = select.select([sys.stdin], [], [], after_s)
    return bool(readable) and not sys.stdin.readline()


def watch(gpu: Gpu) -> None:
    while not _input_ended(0.02):
        sys.stdout.write(f"free {gpu.free_bytes()}\n")
        sys.stdout.flush()


def neighbour(gpu: Gpu) -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not _input_ended(0.35):
        address = gpu.take(256 * 1024**2)
        ended = _input_ended(0.35)
        gpu.give_back(address)
        if ended:
            return


if __name__ == "__main__":
    {"watch": watch, "neighbour": neighbour}[sys.argv[1]](Gpu())

"""Device memory of the planted backend, against a CUDA driver of ours that only says what it is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tritonchaos
from tritonchaos import native

PLANTED = Path(tritonchaos.__file__).parent / "planted"
NAMES = ("keep.c", "host.c", "in_process.c", "device.c", "cuda_driver.c", "ledger.c", "message.c")
pytestmark = pytest.mark.skipif(native.missing_compiler() is not None, reason=f"{native.missing_compiler()}")

# Two devices; allocations above 1 GiB fail as they do on a full one. Handles are numbers.
DRIVER = """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static void *current = (void *)0x77;
static uintptr_t handles = 0x1000;
#define SAY(...) (printf("%s:", current == (void *)0x77 ? "before" : current == (void *)0xC1 ? "gpu1" : "gpu0"), \\
                  printf(__VA_ARGS__), printf("\\n"), fflush(stdout))
int cuInit(unsigned flags) { SAY("init %u", flags); return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    SAY("retain %d", device);
    *context = (void *)(uintptr_t)(0xC0 + device);
    return 0;
}
int cuCtxGetCurrent(void **context) { *context = current; return 0; }
int cuCtxSetCurrent(void *context) { current = context; return 0; }
int cuGetErrorName(int error, const char **name)
{
    *name = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "other";
    return 0;
}
int cuMemAlloc_v2(uint64_t *pointer, size_t bytes)
{
    SAY("alloc %zu", bytes);
    *pointer = ++handles;
    return bytes > 1u << 30 ? 2 : 0;
}
int cuMemFree_v2(uint64_t pointer) { SAY("free %llx", (unsigned long long)pointer); return 0; }
int cuMemsetD8_v2(uint64_t pointer, unsigned char value, size_t bytes)
{
    SAY("set %llx %x %zu", (unsigned long long)pointer, value, bytes);
    return 0;
}
int cuMemGetInfo_v2(size_t *available, size_t *total) { *available = 1u << 30; *total = 1u << 31; return 0; }
int cuMemAllocHost_v2(void **pointer, size_t bytes)
{
    SAY("pinned %zu", bytes);
    *pointer = (void *)++handles;
    return 0;
}
int cuMemFreeHost(void *pointer) { SAY("unpinned %p", pointer); return 0; }
int cuStreamCreate(void **stream, unsigned flags) { SAY("stream %u", flags); *stream = (void *)++handles; return 0; }
int cuStreamDestroy_v2(void *stream) { SAY("no stream %p", stream); return 0; }
int cuEventCreate(void **event, unsigned flags) { SAY("event %u", flags); *event = (void *)++handles; return 0; }
int cuEventDestroy_v2(void *event) { SAY("no event %p", event); return 0; }
int cuModuleLoadData(void **module, const void *image)
{
    SAY("module %d", strncmp(image, ".version", 8) == 0);
    *module = (void *)++handles;
    return 0;
}
int cuModuleUnload(void *module) { SAY("no module %p", module); return 0; }
int cuModuleGetGlobal_v2(uint64_t *pointer, size_t *bytes, void *module, const char *name)
{
    SAY("global %s of %p", name, module);
    *pointer = 1;
    *bytes = 65536;
    return 0;
}
"""
PROBE = """
#include "keep.h"
#include <stdio.h>
/* Take one thing and give it back; the reason if it could not be had. */
const char *take(int what, int64_t bytes, int64_t gpu)
{
    static struct message why;
    struct kept kept;
    message_clear(&why);
    if (!keep_one(&kept, (enum what)what, bytes, gpu, &why))
        return why.text;
    give_back(&kept);
    return "";
}
"""
CALL = """
import ctypes, json, sys
take = ctypes.CDLL(sys.argv[1]).take
take.restype, take.argtypes = ctypes.c_char_p, [ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
for what, size, gpu in json.loads(sys.argv[2]):
    print("took", take(what, size, gpu).decode(), flush=True)
"""
PINNED, DEVICE, STREAM, EVENT, MODULE = range(1, 6)


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probe")
    (folder / "probe.c").write_text(PROBE)
    sources = [folder / "probe.c", *(PLANTED / name for name in NAMES)]
    return native.compile_shared("device_probe", sources, [f"-I{PLANTED}"])


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(DRIVER)
    library = native.compile_shared("pretended_cuda", [folder / "driver.c"])
    (folder / "libcuda.so.1").symlink_to(library)
    return folder


def take(probe: Path, things: list[tuple[int, int, int]], **env: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", CALL, str(probe), json.dumps(things)],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_the_driver_is_asked_in_the_device_s_primary_context(probe: Path, driver: Path) -> None:
    things = [(DEVICE, 4096, -1), (PINNED, 100, 1), (STREAM, 0, 1), (EVENT, 0, 0), (MODULE, 0, 0)]
    assert take(probe, things, LD_LIBRARY_PATH=str(driver)) == [
        *["before:init 0", "before:retain 0", "gpu0:alloc 4096", "gpu0:set 1001 a5 4096", "gpu0:free 1001", "took "],
        *["before:retain 1", "gpu1:pinned 100", "gpu1:unpinned 0x1002", "took "],
        *["gpu1:stream 0", "gpu1:no stream 0x1003", "took "],
        *["gpu0:event 0", "gpu0:no event 0x1004", "took "],
        *["gpu0:module 1", "gpu0:global planted_data of 0x1005", "gpu0:no module 0x1005", "took "],
    ]


def test_what_the_device_does_not_have_is_said(probe: Path, driver: Path) -> None:
    said = take(probe, [(DEVICE, 2 << 30, 0), (DEVICE, 1, 2), (STREAM, 0, 64)], LD_LIBRARY_PATH=str(driver))
    reasons = [line for line in said if line.startswith("took")]
    assert reasons == [
        "took 2147483648 bytes on GPU 0: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2), 1073741824 bytes are free",
        "took there is no GPU 2, CUDA sees 2",
        "took there is no GPU 64, CUDA sees 2",
    ]


def test_a_driver_without_a_function_is_said(probe: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.c").write_text("int cuInit(unsigned flags) { return (int)flags; }")
    library = native.compile_shared("empty_cuda", [tmp_path / "empty.c"])
    (tmp_path / "libcuda.so.1").symlink_to(library)
    assert take(probe, [(STREAM, 0, 0)], LD_LIBRARY_PATH=str(tmp_path)) == ["took libcuda.so.1 has no cuDeviceGet"]


def test_the_ledger_takes_the_place_of_the_driver(probe: Path, driver: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    things = [(DEVICE, 4096, 3), (EVENT, 0, -1), (PINNED, 100, 0)]
    env = {"LD_LIBRARY_PATH": str(driver), "TRITONCHAOS_PLANTED_LEDGER": str(ledger)}
    assert take(probe, things, **env) == ["took "] * 3
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert [(line["gpu"], line["bytes"], line["what"]) for line in lines] == [
        (3, 4096, "device"),
        (3, -4096, "device"),
        (0, 0, "event"),
    ]


def test_a_ledger_that_cannot_be_written_is_said(probe: Path, tmp_path: Path) -> None:
    said = take(probe, [(DEVICE, 1, 0)], TRITONCHAOS_PLANTED_LEDGER=str(tmp_path / "no" / "ledger"))
    assert said == [f"took ledger {tmp_path}/no/ledger: No such file or directory"]

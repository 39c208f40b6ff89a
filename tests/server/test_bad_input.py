"""Bad input of every kind: a clear message, the right exit code, and nothing left running."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest

from tests.local_server import start_local_server
from tritonchaos.cli.app import main

pytestmark = pytest.mark.server

GOOD = """\
scenario: quick
seed: 1
target: [{local: {}}]
models:
  ident: {template: identity, variant: planted, parameters: {datatype: FP32, dims: [4]}}
phases:
  - phase: many
    cycles: 2
    each: [{load: ident}, {wait: 20ms}, {unload: ident}]
check: [server_alive]
"""
LONG = GOOD.replace("cycles: 2", "cycles: 2000")


class Ended:
    """How a call of the command line ended."""

    def __init__(self, exit_code: int, text: str) -> None:
        self.exit_code = exit_code
        self.text = text

    def __repr__(self) -> str:
        return f"exit {self.exit_code}\n{self.text}"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Call the command line in this process, in an empty folder; nothing may be left running by it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # put back afterwards: the command line wraps it

    def call(*arguments: str | Path, command: str = "run") -> Ended:
        monkeypatch.setattr(sys, "argv", ["tritonchaos", command, *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out = capsys.readouterr()
        text = out.out + out.err
        assert "Traceback" not in text, text
        assert [child.cmdline() for child in psutil.Process().children(recursive=True)] == []
        return Ended(int(ended.value.code or 0), " ".join(text.split()))

    return call


def write(text: str | bytes, name: str = "s.yaml") -> Path:
    path = Path(name)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- the scenario file ---------------------------------------------------------------------------

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(8)
)
PHASE = "    cycles: 2\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD.replace("seed: 1", "sead: 1"), ("s.yaml:2:1", "unknown key 'sead'", "did you mean 'seed'")),
        (GOOD.replace("{unload:", "{unlod:"), ("s.yaml:9:", "unknown step 'unlod'", "did you mean 'unload'")),
        (GOOD.replace("seed: 1", "seed: one"), ("s.yaml:2:7", "found 'one'", "expected a whole number")),
        (GOOD.replace("ident:", '"../x":'), ("'../x'", "expected")),
        (GOOD.replace("ident:", '"a/b":'), ("'a/b'", "expected")),
        (GOOD.replace("ident:", '"a\\0b":'), ("models", "expected")),
        (GOOD.replace("  ident:", f"  {'x' * 300}:"), ("models", "expected")),
        (GOOD.replace("template: identity", "template: identty"), ("identty", "identity")),
        (GOOD.replace(PHASE, "    cycles: 0\n"), ("s.yaml:8:13", "at least 1")),
        (GOOD.replace(PHASE, "    cycles: -3\n"), ("s.yaml:8:13", "at least 1")),
        (GOOD.replace(PHASE, "    cycles: {until: verdict}\n"), ("s.yaml:8:", "at_most")),
        (
            GOOD.replace(PHASE, "    cycles: {at_most: 9, until: verdict}\n"),
            ("s.yaml:8:33", "found verdict with no such check", "memory_growth"),
        ),
        (
            GOOD.replace(PHASE, "    cycles: {at_most: 9, until: verdict}\n").replace(
                "[server_alive]", "[memory_growth, memory_growth: {metrics: [host_rss_bytes]}]"
            ),
            ("phases[0].cycles.until", "memory_growth and memory_growth", "exactly one check"),
        ),
        ("", ("s.yaml:1:1", "empty")),
        ("# nothing\n", ("s.yaml:1:1", "empty")),
        (BOMB, ("values, aliases written out",)),
        (GOOD.encode() + b"# \xff\n", ("s.yaml:11:3", "0xff", "UTF-8")),
        (GOOD.replace("  ident:", "\tident:"), ("s.yaml:5:1", "found a tab", "spaces")),
        (GOOD.replace("seed: 1", "seed: 1\nseed: 2"), ("s.yaml:3:1", "a second time", "line 2")),
        (
            GOOD.replace("each:", 'before: [{edit_config: {model: ident, set: {"output[0].data_typ": 1}}}]\n    each:'),
            ("data_typ", "data_type"),
        ),
    ],
    ids=lambda value: None if isinstance(value, str | bytes) else "-".join(value)[:40],
)
def test_a_wrong_scenario_is_told_with_its_place_before_anything_starts(run, text: str | bytes, told: tuple) -> None:
    ended = run(write(text), "--out", "run")
    assert ended.exit_code == 2, ended
    assert [part for part in told if part not in ended.text] == [], ended
    assert not Path("run").exists()


def test_a_scenario_that_is_not_there_is_told_with_what_is_near(run) -> None:
    ended = run("failed-laod")
    assert ended.exit_code == 2
    assert "did you mean failed-load" in ended.text


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--set", "phases.mny.cycles=3"), "did you mean 'many'"),
        (("--set", "phases.many.cycles"), "expected PATH=VALUE"),
        (("--max-time", "soon"), "--max-time: found 'soon'"),
        (("--cycles", "0"), "--cycles"),
        (("--image", "a", "--server-path", "b"), "expected one of them"),
        (("--model-repository", "no-such-folder"), "no-such-folder"),
        (("--plugin", "no_such.py"), "no_such.py does not exist"),
    ],
)
def test_wrong_options_are_told(run, options: tuple[str, ...], told: str) -> None:
    ended = run(write(GOOD), "--out", "run", *options)
    assert ended.exit_code == 2, ended
    assert told in ended.text, ended
    assert not Path("run").exists()


def test_a_config_that_does_not_parse_is_told_with_line_and_column(run) -> None:
    folder = Path("models/mine")
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text('backend: "python"\ninput [ { name: "A" ]\n')
    scenario = GOOD.replace("each: [", "each: [{edit_config: {model: mine, set: {max_batch_size: 4}}}, ")
    ended = run(write(scenario), "--model-repository", "models", "--out", "run")
    assert ended.exit_code == 2, ended
    assert "edit_config of mine" in ended.text
    assert "line 2, column 21" in ended.text or ":2:21" in ended.text, ended
    assert not Path("run").exists()


# --- the run directory ---------------------------------------------------------------------------


def test_an_output_folder_that_cannot_be_made_is_told(run) -> None:
    ended = run(write(GOOD), "--out", "/proc/self/run")
    assert ended.exit_code == 2
    assert "cannot create the run directory" in ended.text
    assert "--out" in ended.text


def test_an_output_folder_that_is_a_file_is_told(run) -> None:
    ended = run(write(GOOD), "--out", write("", "file"))
    assert ended.exit_code == 2
    assert "is a file" in ended.text


@pytest.mark.parametrize("options", [("--out", "models/run"), ("--runs", "models")])
def test_an_output_folder_inside_the_model_repository_is_refused(run, options: tuple[str, str]) -> None:
    Path("models").mkdir()
    ended = run(write(GOOD), "--model-repository", "models", *options)
    assert ended.exit_code == 2
    assert "lies inside the model repository" in ended.text
    assert list(Path("models").iterdir()) == []


def test_two_runs_into_one_folder(run) -> None:
    write(LONG)
    first = subprocess.Popen(
        [sys.executable, "-m", "tritonchaos", "run", "s.yaml", "--out", "run"], stderr=subprocess.DEVNULL
    )
    try:
        assert wait_until(Path("run/run.db").exists)
        second = subprocess.run(
            [sys.executable, "-m", "tritonchaos", "run", "s.yaml", "--out", "run"], capture_output=True, text=True
        )
        judged = subprocess.run([sys.executable, "-m", "tritonchaos", "judge", "run"], capture_output=True, text=True)
    finally:
        first.send_signal(signal.SIGTERM)
        first.wait(60)
    assert second.returncode == 2
    assert "is not empty" in second.stderr
    assert judged.returncode == 2  # locked by the run that goes on
    assert "is still going on" in judged.stderr
    assert first.returncode == 130


def damaged(kind: str, path: Path) -> None:
    if kind == "cut short":
        os.truncate(path, 5000)
    elif kind == "not a database":
        path.write_bytes(b"hello" * 1000)
    elif kind == "empty":
        path.write_bytes(b"")
    else:
        with closing(sqlite3.connect(path)) as database:
            database.execute("UPDATE meta SET value = '99' WHERE key = 'format_version'")
            database.commit()


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    (folder / "s.yaml").write_text(GOOD)
    done = subprocess.run(
        [sys.executable, "-m", "tritonchaos", "run", "s.yaml", "--out", "run"], cwd=folder, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("cut short", "damaged or cut short"),
        ("not a database", "not a database"),
        ("empty", "without a run"),
        ("newer", "newer tritonchaos"),
    ],
)
def test_a_store_that_cannot_be_read_is_told(run, finished_run: Path, kind: str, told: str) -> None:
    shutil.copytree(finished_run, "copy")
    damaged(kind, Path("copy/run.db"))
    for command in ("judge", "report"):
        ended = run("copy", command=command)
        assert ended.exit_code == 2, ended
        assert told in ended.text, ended


def test_a_folder_that_is_no_run_is_told(run) -> None:
    assert run("nowhere", command="judge").exit_code == 2
    assert run(".", command="judge").exit_code == 2


def test_a_disk_that_fills_up_while_running_is_inconclusive(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(LONG)

    def limit() -> None:
        # Stands for a full disk: writing beyond fails. Python ignores SIGXFSZ, so that it is an error, not a signal.
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    done = subprocess.run(
        [sys.executable, "-m", "tritonchaos", "run", "s.yaml", "--out", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=limit,
        timeout=120,
    )
    assert done.returncode == 3, done.stderr
    assert "the run broke off: cannot write" in done.stderr
    assert "free disk space" in done.stderr
    assert processes_below(tmp_path) == []
    judged = subprocess.run(
        [sys.executable, "-m", "tritonchaos", "judge", "run"], cwd=tmp_path, capture_output=True, text=True
    )
    assert judged.returncode in {3, 130}, judged.stderr


@pytest.fixture
def mount_namespace() -> list[str]:
    """Start of a command that may mount without anybody else seeing it."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("needs root and a mount namespace of its own")
    mounted = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount here: {mounted.stderr.decode()}")
    return ["unshare", "-m", "sh", "-c"]


def test_a_file_system_that_fills_up_while_running_is_inconclusive(tmp_path: Path, mount_namespace: list[str]) -> None:
    (tmp_path / "s.yaml").write_text(LONG)
    (tmp_path / "small").mkdir()
    script = (
        "mount -t tmpfs -o size=1m tmpfs small && "
        f"{sys.executable} -m tritonchaos run s.yaml --out small/run; code=$?; ls small/run >&2; exit $code"
    )
    done = subprocess.run([*mount_namespace, script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3, done.stderr
    assert "the run broke off: cannot write" in done.stderr
    assert "scratch" not in done.stderr
    assert processes_below(tmp_path) == []


def test_shared_memory_that_is_full_is_told_before_anything_starts(tmp_path: Path, mount_namespace: list[str]) -> None:
    (tmp_path / "s.yaml").write_text(GOOD.replace("variant: planted", "variant: python"))
    script = f"mount -t tmpfs -o size=64k tmpfs /dev/shm && exec {sys.executable} -m tritonchaos run s.yaml --out run"
    done = subprocess.run([*mount_namespace, script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4, done.stderr
    assert "/dev/shm has 64 KiB free" in done.stderr
    assert not (tmp_path / "run").exists()


# --- the server ----------------------------------------------------------------------------------

HELP = '[ "$1" = --help ] && { echo "  --model-repository <string>"; exit 0; }\n'


def fake_server(script: str) -> Path:
    path = write(f"#!/bin/sh\n{HELP}{script}\n", "tritonserver")
    path.chmod(0o755)
    return path.absolute()


def other_machine() -> Path:
    header = bytearray(Path(sys.executable).resolve().read_bytes()[:4096])
    header[18:20] = (243).to_bytes(2, "little")  # RISC-V
    path = write(bytes(header), "tritonserver")
    path.chmod(0o755)
    return path.absolute()


@pytest.mark.parametrize(
    ("server", "told"),
    [
        (lambda: "/no/such/tritonserver", "does not exist"),
        (lambda: write("#!/bin/sh\n", "tritonserver").absolute(), "is not executable"),
        (other_machine, "for another machine"),
        (lambda: Path("/usr/bin/true").resolve(), "does not answer as tritonserver does"),
        (lambda: fake_server("echo 'E something is wrong'; exit 7"), "ended with exit status 7"),
        (lambda: fake_server("while :; do echo still starting; sleep 0.05; done"), "was not live after"),
    ],
    ids=["missing", "not executable", "another machine", "no tritonserver", "exits at once", "prints for ever"],
)
def test_a_server_that_cannot_be_had_is_no_target(run, server, told: str) -> None:
    path = server()
    scenario = write(GOOD.replace("seed: 1", "seed: 1\nserver: {startup_deadline: 2s}"))
    ended = run(scenario, "--server-path", path, "--out", "run")
    assert ended.exit_code == 4, ended
    assert told in ended.text, ended
    assert not Path("run/scratch").exists()


def test_the_last_words_of_a_server_that_does_not_start_are_shown(run) -> None:
    ended = run(write(GOOD), "--server-path", fake_server("echo 'E something is wrong'; exit 7"), "--out", "run")
    assert "| E something is wrong" in ended.text


def test_a_port_that_is_taken_is_no_target(run) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        scenario = write(GOOD.replace("seed: 1", f"seed: 1\nserver: {{flags: {{http-port: {port}}}}}"))
        ended = run(scenario, "--out", "run")
    assert ended.exit_code == 4, ended
    assert "ports taken" in ended.text


def test_an_image_that_was_named_has_no_fallback(run) -> None:
    ended = run("good-load", "--image", "no-such-registry.invalid/tritonserver:1", "--out", "run")
    assert ended.exit_code == 4, ended
    assert not Path("run").exists()


def test_a_variant_that_was_named_has_no_fallback(run) -> None:
    ended = run(write(GOOD), "--variant", "no_such_variant", "--out", "run")
    assert ended.exit_code in {2, 4}, ended
    assert "no_such_variant" in ended.text
    assert "planted" in ended.text


# --- the compiler --------------------------------------------------------------------------------


def test_without_a_compiler_the_planted_variant_is_told_to_need_one(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONCHAOS_CACHE", str(Path("cache").absolute()))
    monkeypatch.setenv("PATH", str(Path("empty").absolute()))
    monkeypatch.delenv("CC", raising=False)
    ended = run(write(GOOD), "--out", "run")
    assert ended.exit_code in {2, 4}, ended
    assert "compiler" in ended.text
    assert not Path("run").exists()


def test_the_last_lines_of_a_compiler_that_fails_are_shown(run, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = write("#!/bin/sh\necho 'error: out of patience' >&2\nexit 1\n", "cc")
    compiler.chmod(0o755)
    monkeypatch.setenv("TRITONCHAOS_CACHE", str(Path("cache").absolute()))
    monkeypatch.setenv("CC", str(compiler.absolute()))
    ended = run(write(GOOD), "--out", "run")
    assert ended.exit_code in {2, 4}, ended
    assert "error: out of patience" in ended.text
    assert not Path("run").exists()


# --- a remote server -----------------------------------------------------------------------------


@contextmanager
def answering(reply: bytes) -> Iterator[str]:
    """Something that answers every connection with the same bytes."""
    ending = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.settimeout(0.1)

        def serve() -> None:
            while not ending.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    continue
                with closing(connection):
                    connection.recv(65536)
                    connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            ending.set()
            thread.join()


WEB_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\nConnection: close\r\n\r\n<p/>"


NESTED = WEB_PAGE.replace(b"th: 4", b"th: 200000").replace(b"<p/>", b"[" * 200_000)
CONTROLS = WEB_PAGE.replace(b"<p/>", b"\x00\x1b[2")


@pytest.mark.parametrize(
    "reply",
    [WEB_PAGE, NESTED, CONTROLS, b"\x00\xff garbage \r\n\r\n" * 20, b""],
    ids=["web page", "nested JSON", "control characters", "garbage", "nothing"],
)
def test_a_remote_that_is_no_triton_is_no_target(run, reply: bytes) -> None:
    with answering(reply) as url:
        ended = run(write(GOOD), "--url", url, "--out", "run")
    assert ended.exit_code == 4, ended
    assert url.removeprefix("http://") in ended.text, ended
    assert not {"\0", "\x1b"} & set(ended.text)
    assert not Path("run").exists()


def test_a_remote_that_is_down_is_no_target(run) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    ended = run(write(GOOD), "--url", f"http://127.0.0.1:{port}", "--out", "run")
    assert ended.exit_code == 4, ended
    assert str(port) in ended.text


REMOTE = """\
scenario: remote
seed: 1
target: [{{remote: {{url: "{url}", repository: {repository}, backends: [python]}}}}]
models:
  ident: {{template: identity, variant: python, parameters: {{datatype: FP32, dims: [4]}}}}
phases:
  - phase: many
    cycles: 200
    each: [{{load: ident}}, {{wait: 20ms}}, {{unload: ident}}]
check: [server_alive, expectations]
"""


@pytest.mark.long  # test_remote_target.py has the same with a planted model, which is quicker
def test_a_remote_that_dies_in_mid_run_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    server = start_local_server(folder)
    try:
        text = REMOTE.format(url=server.running.url, repository=server.launch.repository)
        (tmp_path / "s.yaml").write_text(text)
        process = subprocess.Popen(
            [sys.executable, "-m", "tritonchaos", "run", "s.yaml", "--out", "run"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert wait_until(lambda: (tmp_path / "run" / "run.db").exists())
        time.sleep(2)
        os.kill(server.pid, signal.SIGKILL)
        said, _ = process.communicate(timeout=90)
    finally:
        server.stop()
    assert process.returncode in {1, 3}, said
    assert "Traceback" not in said
    assert (tmp_path / "run" / "results.json").exists(), said
    assert list(server.launch.repository.iterdir()) == []


# --- ends of all kinds ---------------------------------------------------------------------------


def processes_below(folder: Path) -> list[str]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in part for part in process.info["cmdline"] or ()):
            found.append(" ".join(process.info["cmdline"]))
    return found


def wait_until(condition, at_most_s: float = 60) -> bool:
    end = time.monotonic() + at_most_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("after_s", [0.2, 0.5, 0.7, 0.9])
def test_an_end_signal_in_the_middle_of_the_start_leaves_nothing(tmp_path: Path, after_s: float) -> None:
    (tmp_path / "s.yaml").write_text(LONG)
    process = subprocess.Popen(
        [sys.executable, "-m", "tritonchaos", "run", "s.yaml", "--out", "run"], cwd=tmp_path, stderr=subprocess.PIPE
    )
    time.sleep(after_s)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    # Before its handlers are there, the signal ends Python as it ends any program.
    assert process.returncode in {130, -signal.SIGTERM}
    assert wait_until(lambda: not processes_below(tmp_path / "run"), 10)
    assert not (tmp_path / "run" / "scratch").exists()


def test_a_terminal_that_is_closed_ends_the_run_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(LONG)
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tritonchaos", "run", "s.yaml", "--out", "run"],
        cwd=tmp_path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(theirs)
    try:
        assert wait_until(lambda: (tmp_path / "run" / "server.log").exists())
        assert os.read(ours, 100)
    finally:
        os.close(ours)  # the kernel sends SIGHUP, and every write to the terminal fails from now on
    assert process.wait(60) == 130
    assert wait_until(lambda: not processes_below(tmp_path / "run"), 10)
    assert not (tmp_path / "run" / "scratch").exists()


def take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize("options", ["", "--json"])
def test_a_reader_that_goes_does_not_change_the_verdict(tmp_path: Path, options: str) -> None:
    (tmp_path / "s.yaml").write_text(GOOD)
    command = f"{sys.executable} -m tritonchaos run s.yaml --out run {options}"
    done = subprocess.run(
        ["bash", "-c", f'{command} | true; echo "codes ${{PIPESTATUS[@]}}" >&2'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "codes 0 0" in done.stderr, done.stderr
    assert (tmp_path / "run" / "results.json").exists()

"""Who listens on a port of this machine."""

from __future__ import annotations

import socket

import pytest

from tritonchaos.local_server.listening import find_listener, is_this_machine


def test_a_port_of_another_program_is_not_taken_for_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = find_listener(listener.getsockname()[1])
    assert found.process is None
    assert "which is no tritonserver" in found.why_not


def test_a_port_that_nobody_listens_on_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert "nothing on this machine listens" in find_listener(port).why_not


@pytest.mark.parametrize(
    ("host", "is_here"),
    [("127.0.0.1", True), ("localhost", True), ("192.0.2.1", False), ("no-such-host.invalid", False), ("", False)],
)
def test_only_own_addresses_are_this_machine(host: str, is_here: bool) -> None:
    assert is_this_machine(host) is is_here

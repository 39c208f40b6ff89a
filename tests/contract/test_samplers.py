"""What every registered sampler keeps to, on this machine with this very process in the server's place."""

import os

import pytest

from tritonchaos.plugins import SAMPLERS, Group, SampleScope, load_plugins

load_plugins()

ABSENT_PID = 2**22 + 1  # above the kernel's largest pid


@pytest.fixture(params=SAMPLERS.names())
def sampler(request):
    sampler = SAMPLERS[request.param]()
    yield sampler
    sampler.close()


@pytest.fixture
def scope(tmp_path):
    cgroup, temp = tmp_path / "cgroup", tmp_path / "temp"
    cgroup.mkdir()
    temp.mkdir()
    (cgroup / "memory.current").write_text("4096\n")
    return SampleScope(pid=os.getpid(), shm_prefix=f"tc_contract{os.getpid()}_", temp=temp, cgroups={"": cgroup})


def open_fds():
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_the_shipped_samplers_are_registered():
    assert {"container", "host", "nvml"} <= set(SAMPLERS.names())


def test_reads_whole_numbers_of_metrics_named_with_a_unit(sampler, scope):
    sampler.open(scope)
    for group in Group:
        for metric, value in sampler.read(group).items():
            assert type(value) is int, metric
            assert value >= 0, metric
            name = metric.partition("@")[0]
            assert name.endswith(("_bytes", "_alive")) or name.startswith("server_"), metric


def test_fast_group_is_part_of_all(sampler, scope):
    sampler.open(scope)

    assert set(sampler.read(Group.FAST)) <= set(sampler.read(Group.ALL))


def test_what_is_unavailable_is_absent_and_has_a_reason(sampler, scope):
    why = sampler.open(scope)

    assert not set(why) & set(sampler.read(Group.ALL))
    assert all(why.values())


def test_each_metric_is_either_read_or_has_a_reason(sampler, scope):
    why = sampler.open(scope)

    assert set(sampler.quanta()) == set(why) | set(sampler.read(Group.ALL))
    assert all(quantum >= 1 for quantum in sampler.quanta().values())


def test_absent_server_raises_nothing_and_shows_no_process_metrics(sampler, scope):
    for pid in (None, ABSENT_PID):
        sampler.open(SampleScope(pid=pid, temp=scope.temp))
        shown = {metric.partition("@")[0] for metric in sampler.read(Group.ALL)}
        assert not [name for name in shown if name.startswith(("host_", "stub_", "server_"))]
        assert all(isinstance(note, str) and note for note in sampler.notes())


def test_opens_again_and_closes_twice_without_keeping_anything(sampler, scope):
    sampler.open(scope)
    sampler.close()
    before = open_fds()
    for _ in range(5):
        sampler.open(scope)
        sampler.read(Group.ALL)
    sampler.close()
    sampler.close()

    assert open_fds() == before
    assert sampler.open(scope).keys() | sampler.read(Group.ALL).keys()


def test_has_help():
    assert all(len(SAMPLERS.help(name)) > 10 for name in SAMPLERS.names())

"""Stacks of gdb and eu-stack: read, compared, and told with Triton's own threads first."""

from __future__ import annotations

from tritonchaos.scenario_engine.stack_summary import count_unmoved, read_stacks, summarise, unmoved

GDB = """\
[New LWP 12]
Thread 3 (Thread 0x7f53 (LWP 13) "worker"):
#0  0x00007f5 in epoll_wait (epfd={epfd}) at ../epoll.c:30
#1  0x00007f6 in event_base_loop () from /usr/lib/libevent.so.7

Thread 2 (Thread 0x7f52 (LWP 12) "worker"):
#0  {inner} (timeout=1) at clock.c:1
#1  0x01 in __GI___sleep (s=2) at sleep.c:1
#2  0x00007f6 in triton::core::Load<std::map<int, std::vector<int> > >(std::string const&, bool) (a=1) at x.cc:1
#3  0x00007f6 in ?? () from /usr/lib/libstdc++.so.6

Thread 1 (Thread 0x7f51 (LWP 11) "worker"):
#0  0x00007f5 in epoll_wait (epfd=3) at ../epoll.c:30
#1  0x00007f6 in event_base_loop () from /usr/lib/libevent.so.7
"""
EU_STACK = """\
PID 11 - process
TID 11:
#0  0x00007f5 epoll_wait - /usr/lib/libc.so.6
#1  0x00007f6 main
TID 12:
#0  0x00007f5 nanosleep - /usr/lib/libc.so.6
"""
FIRST = GDB.format(epfd=3, inner="nanosleep")


def test_functions_are_told_without_what_they_were_called_with():
    stacks = read_stacks(FIRST)
    assert stacks[12].functions == ("nanosleep", "__GI___sleep", "triton::core::Load", "?? in libstdc++.so.6")
    assert (stacks[12].name, sorted(stacks)) == ("worker", [11, 12, 13])


def test_stacks_of_eu_stack_are_read_too():
    stacks = read_stacks(EU_STACK)
    assert {number: stack.functions for number, stack in stacks.items()} == {
        11: ("epoll_wait", "main"),
        12: ("nanosleep",),
    }


def test_a_thread_in_another_function_has_moved_and_another_argument_is_no_move():
    second = GDB.format(epfd=4, inner="read")
    assert sorted(unmoved(FIRST, second)) == [11, 13]
    assert count_unmoved({11: FIRST}, {11: second}) == "2 of 3 threads did not move"


def test_a_process_that_was_not_there_before_has_moved():
    assert count_unmoved({}, {11: FIRST}) == "0 of 3 threads did not move"


def test_tritons_own_threads_come_first_and_equal_ones_together():
    assert list(summarise("server 11", FIRST, FIRST)) == [
        "server 11: 3 of 3 threads did not move",
        "  1 thread (12 worker): nanosleep < triton::core::Load < ?? in libstdc++.so.6",
        "  2 threads (11 worker, 13 worker): epoll_wait < event_base_loop",
    ]

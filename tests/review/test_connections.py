"""Which connections are dropped: those beyond a number, the oldest strangers first, and those that take too long."""

import socket
import threading

import pytest

from helpers.patience import PATIENCE
from untwist.review import connections
from untwist.review.connections import Connections


@pytest.fixture
def clients():
    """Pairs of sockets: what the server holds, and what the client does."""
    pairs = [socket.socketpair() for _ in range(6)]
    yield pairs
    for pair in pairs:
        for one in pair:
            one.close()


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    return Connections()


def is_dropped(pair):
    """Whether a client hears that its connection has ended; what it hears first is nothing."""
    pair[1].setblocking(False)
    try:
        return pair[1].recv(1) == b""
    except BlockingIOError:
        return False


def test_the_oldest_stranger_makes_room(few, clients):
    held = [pair[0] for pair in clients]
    for one in held[:3]:
        assert few.admit(one)
    few.trust(held[0])
    waiting = threading.Thread(target=few.admit, args=(held[3],))
    waiting.start()
    clients[1][1].settimeout(PATIENCE)
    assert clients[1][1].recv(1) == b""  # It is told to go, and the new one waits until it has gone.
    assert len(few) == 3
    few.release(held[1])
    waiting.join(PATIENCE)
    assert not waiting.is_alive()
    assert len(few) == 3
    assert [is_dropped(pair) for pair in clients[:4]] == [False, True, False, False]


def test_who_may_ask_does_not_make_room(few, clients):
    held = [pair[0] for pair in clients]
    for one in held[:3]:
        few.admit(one)
        few.trust(one)
    assert not few.admit(held[3])
    assert not any(map(is_dropped, clients[:3]))
    few.release(held[3])  # It was never in.
    assert len(few) == 3


def test_time_counts_for_the_request_and_for_the_answer_but_not_between(clients):
    now = [0.0]
    some = Connections(lambda: now[0])
    reading, working, answering = (pair[0] for pair in clients[:3])
    for one in (reading, working, answering):
        some.admit(one)
    some.hold(working)
    now[0] = connections.PATIENCE / 2
    some.renew(answering)
    some.drop_late()
    assert not any(map(is_dropped, clients))
    now[0] = connections.PATIENCE
    some.drop_late()
    assert [is_dropped(pair) for pair in clients[:3]] == [True, False, False]
    now[0] *= 1.5
    some.drop_late()
    assert [is_dropped(pair) for pair in clients[:3]] == [True, False, True]
    now[0] *= 100
    some.drop_late()
    assert not is_dropped(clients[1])


def test_a_rest_ends_when_a_descriptor_is_given_back(clients, monkeypatch):
    monkeypatch.setattr(connections, "REST", PATIENCE)
    some = Connections()
    some.admit(clients[0][0])
    resting = threading.Thread(target=some.rest)
    resting.start()
    clients[0][1].settimeout(PATIENCE)
    assert clients[0][1].recv(1) == b""  # The oldest stranger is told to go.
    some.release(clients[0][0])
    resting.join(PATIENCE)
    assert not resting.is_alive()


def test_a_client_that_has_gone_can_be_dropped(clients):
    some = Connections(iter([0.0, 1e9]).__next__)
    ours, theirs = socket.socketpair()
    some.admit(ours)
    theirs.close()
    ours.close()
    some.drop_late()
    assert len(some) == 1

"""A client, in its own process, in each situation: SLUICE_KIT_RUNNER is the command that runs it, SLUICE_KIT_TRANSPORT
what carries the stream: http, websocket, connection, a WebSocket on which it is opened, or filters, a WebSocket on
which filters are subscribed to."""

import json
import os
import shlex
import subprocess

import pytest
from connection_situations import CONNECTION_SITUATIONS
from filter_situations import FILTER_SITUATIONS
from server import ScriptedServer
from situations import SITUATIONS, dump, is_over, name_of
from websocket_situations import WEBSOCKET_SITUATIONS

RUNNER = shlex.split(os.environ["SLUICE_KIT_RUNNER"])
TRANSPORT = os.environ.get("SLUICE_KIT_TRANSPORT", "http")
DEADLINE_S = 120
OWN = {"http": [], "websocket": WEBSOCKET_SITUATIONS, "connection": CONNECTION_SITUATIONS,
       "filters": FILTER_SITUATIONS}[TRANSPORT]
PLAYED = [situation for situation in SITUATIONS if is_over(situation, TRANSPORT)] + OWN


@pytest.mark.parametrize("situation", PLAYED, ids=lambda situation: situation.name)
def test_client(situation):
    servers = [ScriptedServer(visits, TRANSPORT) for visits in (situation.visits, situation.beside) if visits]
    url = servers[0].url if len(servers) == 1 else [server.url for server in servers]
    done = subprocess.run(RUNNER, input=dump(situation, url, TRANSPORT) + "\n", capture_output=True, text=True,
                          timeout=DEADLINE_S)
    for server in servers:
        server.close()
    assert done.returncode == 0, done.stderr
    *messages, end = [json.loads(line) for line in done.stdout.splitlines()]
    given = tuple(map(name_of, messages))
    assert given == situation.wants if len(servers) == 1 and not situation.others else sorted(map(str, given)) == sorted(map(str, situation.wants))
    assert end == {"end": situation.ends}
    for server in servers:
        assert not server.faults and server.unplayed == 0

"""Every fault under load, one after the other, with clients of every kind: none misses an event without being told,
none gets one twice, all get them in order. bench/soak does the same for longer."""

import pytest

from harness.storm import Storm, table
from harness.waiting import eventually

pytestmark = [pytest.mark.wires, pytest.mark.one_redis("test_cluster_storm.py has a storm over a cluster")]
PER_FAULT = 60


def no_pause(_):
    """How long something stays broken does not matter here, only that it breaks."""


def weather(storm, faults):
    """Each fault happens in the middle of a burst; afterwards all calm clients must receive events that were posted
    after it."""
    witnesses = [client for client in storm.clients if client.is_calm and
                 client.kind.name == "firehose" and client.transport != "sluice tail"]
    for fault in faults:
        seen = [len(client.ids) for client in witnesses]
        storm.producer.make(PER_FAULT // 2)
        storm.inflict(fault, no_pause)
        storm.producer.make(PER_FAULT // 2)

        def all_go_on():
            storm.producer.make()  # one that ended together with Redis is replaced
            return all(len(client.ids) >= count + PER_FAULT // 2
                       for client, count in zip(witnesses, seen))
        eventually(all_go_on, f"events flow after {fault.__name__}", 60)


@pytest.mark.parametrize("embedded, shards", [(False, 1), (False, 8), (True, 1)],
                         ids=["own-redis", "eight-shards", "embedded-redis"])
def test_nothing_is_lost_doubled_or_out_of_order(servers, embedded, shards):
    storm = Storm(servers, seed=20261121, embedded=embedded, options=["--drain-timeout", "500ms"],
                  shards=shards, extras=[] if embedded else ["outsiders", "resets"])
    storm.add_clients(2)
    weather(storm, storm.rng.sample(storm.faults(), len(storm.faults())))
    storm.settle()
    rows = storm.rows()
    text, total = table(rows)
    faults = [(client.kind.name, client.transport, client.faults[0])
              for client in storm.clients if client.faults]
    assert not faults, faults
    wrong = ["missing", "twice", "disorder", "foreign", "inversions"]
    if not embedded:  # the embedded one writes to its file once a second
        wrong += ["gaps", "rewound"]
    assert not any(total[name] for name in wrong), "\n" + text
    assert all(row["events"] > 0 for row in rows.values()), "\n" + text
    assert len(storm.in_log) >= PER_FAULT * len(storm.faults()) // 2
    storm.check()

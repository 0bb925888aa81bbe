"""Faults of a Redis Cluster under load, in an order determined by a seed, with clients of every kind: none misses an
event without being told, none gets one twice, all get them in order. bench/soak --cluster does the same for longer, and
also the slow faults: nodes that are added and removed, that hang, that return with another database."""

from harness.cluster_storm import ClusterStorm
from harness.storm import table
from test_storm import weather


def test_nothing_is_lost_doubled_or_out_of_order(servers):
    storm = ClusterStorm(servers, seed=20261123, node_timeout_ms=4000, is_impatient=True,
                         options=["--drain-timeout", "500ms"])
    storm.add_clients(1)
    faults = [storm.kill_master, storm.promote_replica, storm.kill_node_connections, storm.kill_subscribers,
              storm.move_shard, storm.interrupted_move, storm.map_that_flaps, storm.kill_worker, storm.kill_intake,
              storm.overrun_ring]
    weather(storm, storm.rng.sample(faults, len(faults)))
    storm.settle()
    rows = storm.rows()
    text, _ = table(rows)
    strange = [(client.kind.name, client.transport, client.faults[0]) for client in storm.clients if client.faults]
    assert not strange, strange
    wrong = ("missing", "twice", "disorder", "inversions", "foreign", "untold")
    assert not any(sum(row[name] for row in rows.values()) for name in wrong), "\n" + text
    assert all(row["events"] > 0 for row in rows.values()), "\n" + text
    storm.check()

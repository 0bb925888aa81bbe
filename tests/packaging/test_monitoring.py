"""Rules and dashboard only use metrics that a server without any traffic exposes already."""

import json
import re
import subprocess
import tempfile
import pathlib

import pytest

from harness.gateway import Gateway
from harness.programs import SOURCE

RULES = SOURCE / "packaging" / "prometheus" / "sluice-rules.yml"
DASHBOARD = SOURCE / "packaging" / "grafana" / "sluice.json"


@pytest.fixture(scope="module")
def metrics():
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        gateway = Gateway(pathlib.Path(folder) / "gateway", None, "--workers", 1).start()
        text = gateway.get("/metrics").text
        gateway.stop()
    return text


def promtool(*arguments, given=None):
    done = subprocess.run(["promtool", *map(str, arguments)], input=given, text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr


def assert_exposed(metrics, expressions):
    exposed = set(re.findall(r"^# TYPE (\w+)", metrics, re.MULTILINE))
    asked = {re.sub("_bucket$", "", name) for expression in expressions
             for name in re.findall(r"\bsluice_\w+", expression)}
    assert asked and asked <= exposed, asked - exposed


def test_rules_are_valid_and_ask_for_what_is_there(metrics):
    promtool("check", "rules", RULES)
    assert_exposed(metrics, re.findall(r"expr: (.*)", RULES.read_text()))


def test_each_alert_fires_for_its_reason_and_for_no_other():
    tests = pathlib.Path(__file__).parent / "sluice-rules-test.yml"
    promtool("test", "rules", tests)
    alerts = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    assert alerts == set(re.findall(r'alertname="(\w+)"', tests.read_text()))


def test_example_of_a_configuration_is_valid():
    promtool("check", "config", RULES.parent / "prometheus.yml")


def test_dashboard_asks_for_what_is_there(metrics):
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    expressions = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    assert_exposed(metrics, expressions)
    rules = "".join(f"      - record: panel:{number}\n        expr: {json.dumps(expression)}\n"
                    for number, expression in enumerate(expressions))
    rules = rules.replace("$__rate_interval", "1m")
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        file.write("groups:\n  - name: dashboard\n    rules:\n" + rules)
        file.flush()
        promtool("check", "rules", file.name)


def test_families_are_named_as_prometheus_wants_them(metrics):
    promtool("check", "metrics", given=metrics)

"""The files for containers: whatever they refer to exists. With SLUICE_TEST_CONTAINER=1 the image is built and run."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest
import yaml

from harness.http import HttpConnection
from harness.ports import steady_port
from harness.programs import BUILD, SOURCE
from harness.redis_server import RedisServer
from harness.waiting import eventually

CONTAINER = SOURCE / "packaging" / "container"
KUBERNETES = SOURCE / "packaging" / "kubernetes"
FILES = [CONTAINER / "Containerfile", CONTAINER / "compose.yaml", KUBERNETES / "sluice.yaml"]


def options():
    table = (SOURCE / "gateway/config/config_table.def").read_text()
    return set(re.findall(r'^(?:TEXT|LIST|NUMBER|BYTES|TIME|FLAG)\(\w+,\s*"([a-z-]+)"', table, re.M))


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((CONTAINER / "compose.yaml").read_text())


@pytest.fixture(scope="module")
def manifests():
    return [each for file in sorted(KUBERNETES.glob("*.yaml")) for each in yaml.safe_load_all(file.read_text())]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_settings_are_those_of_sluiced(file):
    named = set(re.findall(r"\bSLUICE_[A-Z_]+", file.read_text()))
    assert named and {name.removeprefix("SLUICE_").lower().replace("_", "-") for name in named} <= options()


def test_compose_mounts_what_is_there(compose):
    mounted = [each.split(":") for service in compose["services"].values() for each in service.get("volumes", [])]
    for source, *_ in mounted:
        if source.startswith("."):
            assert (CONTAINER / source).is_file(), source
        else:
            assert source in compose["volumes"], source
    assert sum(source.startswith(".") for source, *_ in mounted) == 6


def test_compose_trusts_nginx_alone(compose):
    trusted = compose["services"]["sluiced-1"]["environment"]["SLUICE_TRUSTED_PROXIES"]
    assert trusted == compose["services"]["nginx"]["networks"]["default"]["ipv4_address"]


def test_nginx_takes_its_configuration(tmp_path):
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if not nginx:
        pytest.skip("not installed: nginx")
    text = (CONTAINER / "nginx.conf").read_text()
    assert "sluiced-1:8080" in text and "sluiced-2:8080" in text
    (tmp_path / "site.conf").write_text(re.sub(r"sluiced-[12]", "127.0.0.1", text))
    config = tmp_path / "nginx.conf"
    config.write_text(f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{ include {tmp_path}/site.conf; }}\n")
    done = subprocess.run([nginx, "-t", "-q", "-p", tmp_path, "-e", "stderr", "-c", config], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_prometheus_takes_its_configuration(tmp_path):
    for file in (CONTAINER / "prometheus.yml", SOURCE / "packaging/prometheus/sluice-rules.yml"):
        shutil.copy(file, tmp_path)
    done = subprocess.run(["promtool", "check", "config", tmp_path / "prometheus.yml"], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_manifests_fit_each_other(manifests):
    named = {(each["kind"], each["metadata"]["name"]): each for each in manifests}
    assert len(named) == len(manifests) and all(each["apiVersion"] for each in manifests)
    gateway = named["Deployment", "sluiced"]["spec"]
    pod, container = gateway["template"]["spec"], gateway["template"]["spec"]["containers"][0]
    labels = gateway["template"]["metadata"]["labels"]
    for selects in (gateway["selector"]["matchLabels"], named["Service", "sluice"]["spec"]["selector"],
                    named["PodDisruptionBudget", "sluiced"]["spec"]["selector"]["matchLabels"]):
        assert selects.items() <= labels.items()
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert named["Service", "sluice"]["spec"]["ports"][0]["targetPort"] in ports
    probes = [container[probe]["httpGet"] for probe in ("readinessProbe", "startupProbe", "livenessProbe")]
    assert [probe["path"] for probe in probes] == ["/readyz", "/healthz", "/healthz"]
    assert all(probe["port"] in ports for probe in probes)
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    env = {each["name"]: each.get("value") for each in container["env"]}
    drained_s = int(env["SLUICE_DRAIN_TIMEOUT"].removesuffix("s"))
    before_s = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > drained_s + before_s
    scaled = named["HorizontalPodAutoscaler", "sluiced"]["spec"]["scaleTargetRef"]
    assert (scaled["kind"], scaled["name"]) in named


def buildah(*arguments, **more):
    """Uses a storage driver without namespaces, so that it works in a container, too."""
    done = subprocess.run(["buildah", *map(str, arguments)], text=True, capture_output=True, timeout=500,
                          env={**os.environ, "BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"}, **more)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.strip()


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A container made from the image, not started yet."""
    if os.environ.get("SLUICE_TEST_CONTAINER") != "1":
        pytest.skip("the image is built with SLUICE_TEST_CONTAINER=1")
    folder = tmp_path_factory.mktemp("image")
    subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder], check=True, capture_output=True)
    shutil.rmtree(folder / "_CPack_Packages")
    base = folder / "base.tar"
    subprocess.run(["mmdebstrap", "--variant=minbase", "bookworm", base], check=True, capture_output=True, timeout=500)
    scratch = buildah("from", "scratch")
    buildah("add", scratch, base, "/")
    buildah("commit", "--rm", scratch, "localhost/sluice-test-base")
    base.unlink()
    buildah("bud", "--network", "host", "--build-arg", "BASE=localhost/sluice-test-base", "-t", "localhost/sluice-test",
            "-f", CONTAINER / "Containerfile", folder)
    container = buildah("from", "localhost/sluice-test")
    yield container
    buildah("rm", container)
    buildah("rmi", "localhost/sluice-test", "localhost/sluice-test-base")


def test_the_image_serves_and_ends_when_told(image):
    assert buildah("run", image, "--", "id", "-u") == "10001"
    assert buildah("run", image, "--", "ls", "/etc/sluice") == "sluiced.conf", "no key is in it"
    port, ops_port = steady_port(), steady_port()
    with tempfile.TemporaryDirectory(prefix="sluice-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        (folder / "jwt.secret").write_text("a secret for tests, longer than thirty-two bytes")
        redis_port = steady_port()
        redis = RedisServer(folder / "redis", port=redis_port).start()
        try:
            variables = {"REDIS": f"redis://127.0.0.1:{redis_port}", "LISTEN": f"127.0.0.1:{port}", "WORKERS": "1",
                         "OPS_LISTEN": f"127.0.0.1:{ops_port}", "JWT_SECRET_FILE": "/run/secrets/jwt.secret"}
            command = ["buildah", "run", "--network", "host", "-v", f"{folder}/jwt.secret:/run/secrets/jwt.secret:ro"]
            for variable, value in variables.items():
                command += ["--env", f"SLUICE_{variable}={value}"]
            with open(folder / "log", "w") as log:
                running = subprocess.Popen([*command, image, "--", "/usr/sbin/sluiced"], stdout=log, stderr=log,
                                           env={**os.environ, "BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"})

            def is_ready():
                assert running.poll() is None, (folder / "log").read_text()
                try:
                    with HttpConnection(ops_port) as connection:
                        return connection.request("GET", "/readyz").status == 200
                except OSError:
                    return False
            eventually(is_ready, "the container is ready", 60)
            buildah("run", "--network", "host", image, "--", "curl", "-fsS", f"http://127.0.0.1:{ops_port}/readyz")
            os.kill(holder_of(port), signal.SIGTERM)
            assert running.wait(60) == 0, (folder / "log").read_text()
        finally:
            redis.end()


def holder_of(port):
    """The process that was started to serve this port: the first one that has it in its environment."""
    for process in sorted(pathlib.Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            if process.joinpath("exe").readlink().name == "sluiced" and \
                    f"SLUICE_LISTEN=127.0.0.1:{port}".encode() in process.joinpath("environ").read_bytes():
                return int(process.name)
        except OSError:
            continue
    raise AssertionError("nobody serves it")

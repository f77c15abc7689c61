"""What stands in deploy/ fits the program: verbs, options, ports, volumes and metrics exist."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import pytest
import yaml

from tamias.cli.main import cli
from tamias.features.alerts import messages as attention
from tamias.features.alerts.messages import AlertKind
from tamias.features.service.http import health
from tamias.settings import all_settings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
OBJECTS = [
    each
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for each in yaml.safe_load_all(file.read_text())
    if each["kind"] != "Kustomization"
]
DEPLOYMENTS = [each for each in OBJECTS if each["kind"] == "Deployment"]
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def check(words):
    """Raises unless the verb exists and takes these options."""
    verb, *options = words
    command = cli.get_command(None, verb)
    assert command is not None, f"there is no verb {verb}"
    command.make_context(verb, options, resilient_parsing=False)


def containers():
    return [part for each in DEPLOYMENTS for part in each["spec"]["template"]["spec"]["containers"]]


@pytest.mark.parametrize("name", [name for name in COMPOSE["services"] if name != "database"])
def test_a_service_of_compose_runs_a_verb_with_options_that_exist(name):
    check(COMPOSE["services"][name]["command"])


@pytest.mark.parametrize("container", containers(), ids=lambda each: each["name"])
def test_a_container_runs_a_verb_with_options_that_exist(container):
    check(container["args"])


@pytest.mark.parametrize("unit", UNITS, ids=lambda each: each.name)
def test_a_unit_runs_a_verb_with_options_that_exist(unit):
    (started,) = re.findall(r"^ExecStart=(\S+) (.*)$", unit.read_text(), re.MULTILINE)
    assert started[0] == "/opt/tamias/bin/tamias"
    check(shlex.split(started[1]))


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_volumes_and_secrets_of_a_service_are_declared(name):
    service = COMPOSE["services"][name]
    assert {volume.split(":")[0] for volume in service.get("volumes", [])} <= set(COMPOSE["volumes"])
    assert {secret["source"] for secret in service.get("secrets", [])} <= set(COMPOSE["secrets"])
    assert set(service.get("depends_on", [])) <= set(COMPOSE["services"])


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: each["metadata"]["name"])
def test_a_deployment_selects_its_own_pods_and_mounts_what_it_declares(deployment):
    template = deployment["spec"]["template"]
    assert deployment["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
    declared = {volume["name"] for volume in template["spec"]["volumes"]}
    mounted = {mount["name"] for part in template["spec"]["containers"] for mount in part["volumeMounts"]}
    assert mounted == declared


def test_claims_that_are_mounted_exist():
    claims = {each["metadata"]["name"] for each in OBJECTS if each["kind"] == "PersistentVolumeClaim"}
    volumes = [volume for each in DEPLOYMENTS for volume in each["spec"]["template"]["spec"]["volumes"]]
    used = {
        volume["persistentVolumeClaim"]["claimName"]
        for volume in volumes
        if "persistentVolumeClaim" in volume
    }
    assert used == claims


@pytest.mark.parametrize(
    "service",
    [each for each in OBJECTS if each["kind"] == "Service"],
    ids=lambda each: each["metadata"]["name"],
)
def test_a_service_leads_to_a_port_of_the_pods_it_selects(service):
    (chosen,) = [
        each for each in DEPLOYMENTS if each["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    ]
    (container,) = chosen["spec"]["template"]["spec"]["containers"]
    ports = {port["containerPort"] for port in container["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


def test_workers_ask_the_frontier_by_the_name_of_its_service():
    (worker,) = [each for each in containers() if each["name"] == "worker"]
    name, port = worker["args"][worker["args"].index("--frontier") + 1].split(":")
    (service,) = [each for each in OBJECTS if each["kind"] == "Service" and each["metadata"]["name"] == name]
    assert [each["port"] for each in service["spec"]["ports"]] == [int(port)]


def built(folder):
    """What `kubectl apply -k` would send."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    done = subprocess.run(["kubectl", "kustomize", folder], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def test_the_manifests_are_taken_by_kustomize():
    found = built(DEPLOY / "kubernetes")
    assert {each["metadata"]["namespace"] for each in found} == {"tamias"}
    assert len(found) == len(OBJECTS)


@pytest.mark.parametrize(
    ("name", "variable"), [("citus", "TAMIAS_FRONTIER__BUCKETS"), ("minio", "AWS_ENDPOINT_URL")]
)
def test_an_overlay_adds_its_servers_and_tells_the_services_of_them(name, variable):
    found = built(DEPLOY / "overlays" / name)
    assert {"Job", "Deployment", "PodDisruptionBudget"} < {each["kind"] for each in found}
    told = {
        each["metadata"]["name"]: {part["name"] for part in container["env"]}
        for each in found
        if each["kind"] == "Deployment"
        for container in each["spec"]["template"]["spec"]["containers"]
    }
    assert {each for each, names in told.items() if variable in names} == {"tamias-serve", "tamias-frontier"}
    settings = {part for names in told.values() for part in names if part.startswith("TAMIAS_")}
    assert settings <= {each.variable for each in all_settings()} | {"TAMIAS_DB"}


def test_with_a_store_no_folder_is_shared():
    found = built(DEPLOY / "overlays" / "minio")
    assert "ReadWriteMany" not in json.dumps(found)
    pods = {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "Deployment"}
    for name in ("tamias-serve", "tamias-frontier"):
        volumes = pods[name]["template"]["spec"]["volumes"]
        assert [each for each in volumes if each["name"] == "data"] == [{"name": "data", "emptyDir": {}}]
        assert pods[name]["replicas"] == 2


def test_a_job_of_an_overlay_runs_a_verb_that_exists():
    (job,) = [each for each in built(DEPLOY / "overlays" / "citus") if each["kind"] == "Job"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    verb, *words = container["args"]
    cli.get_command(None, verb).get_command(None, words[0]).make_context(words[0], words[1:])


def test_frontier_and_workers_speak_tls_with_one_authority():
    named = {each["name"]: each["args"] for each in containers()}
    assert {"--tls-cert", "--tls-key"} <= set(named["frontier"])
    assert {"--tls", "--tls-ca"} <= set(named["worker"])
    volumes = [volume for each in DEPLOYMENTS for volume in each["spec"]["template"]["spec"]["volumes"]]
    tls = [volume["secret"] for volume in volumes if volume["name"] == "tls"]
    assert {each["secretName"] for each in tls} == {"tamias-tls"}
    # The key stays with the frontier.
    assert [{"key": "ca.crt", "path": "ca.crt"}] in [each.get("items") for each in tls]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: each["metadata"]["name"])
def test_a_deployment_has_a_budget_for_disruptions_and_what_listens_has_probes(deployment):
    labels = deployment["spec"]["selector"]["matchLabels"]
    budgets = [each["spec"] for each in OBJECTS if each["kind"] == "PodDisruptionBudget"]
    assert [each for each in budgets if each["selector"]["matchLabels"] == labels]
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        if "ports" in container:
            assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)


def test_the_file_of_compose_is_taken_by_compose():
    asked = ["docker", "compose"]
    there = shutil.which("docker") and subprocess.run([*asked, "version"], capture_output=True, check=False)
    if not there or there.returncode:
        pytest.skip("docker compose is not installed")
    words = ["POSTGRES_PASSWORD", "TAMIAS_CONTACT", "TAMIAS_SECRET", "TAMIAS_TOKEN"]
    done = subprocess.run(
        [*asked, "-f", DEPLOY / "compose.yaml", "config", "--format", "json"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **dict.fromkeys(words, "x")},
    )
    assert done.returncode == 0, done.stderr
    services = json.loads(done.stdout)["services"].values()
    secrets = [each for service in services for each in service.get("secrets", [])]
    assert secrets
    # As the account of the image is.
    assert {(each["uid"], each["gid"]) for each in secrets} == {("10001", "10001")}


def test_the_account_of_the_units_is_made_by_sysusers(tmp_path):
    if shutil.which("systemd-sysusers") is None:
        pytest.skip("systemd-sysusers is not installed")
    (tmp_path / "etc").mkdir()
    words = ["systemd-sysusers", f"--root={tmp_path}", DEPLOY / "systemd" / "tamias.sysusers.conf"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "etc" / "passwd").read_text()
    assert re.search(r"^tamias:.*:/var/lib/tamias:\S*nologin$", made, re.MULTILINE), made


@pytest.mark.parametrize("unit", UNITS, ids=lambda each: each.name)
def test_a_unit_is_taken_by_systemd(unit, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    name = unit.name.replace("@", "@frontier.example:7071")
    # The program is elsewhere here, and so is the account.
    text = unit.read_text().replace("/opt/tamias/bin/tamias", "/bin/true").replace("User=tamias\n", "")
    (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / name],
        check=False,
        capture_output=True,
        text=True,
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:", "PATH": "/usr/bin:/bin"},
    )
    complaints = [
        line for line in done.stderr.splitlines() if unit.name.partition(".")[0].rstrip("@") in line
    ]
    assert complaints == []


def test_the_image_copies_files_that_exist():
    text = (DEPLOY / "Containerfile").read_text()
    named = [
        word for line in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE) for word in line.split()
    ]
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_metric_of_the_dashboard_is_exported():
    board = json.loads((DEPLOY / "grafana" / "tamias.json").read_text())
    queries = " ".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
    wanted = set(re.findall(r"\b(?:tamias|process)_\w+", queries))
    exported = set(re.findall(r'"((?:tamias|process)_\w+)"', Path(health.__file__).read_text()))
    assert len(wanted) > 15
    assert wanted <= exported


def test_every_metric_of_the_alerting_rules_is_exported():
    rules = yaml.safe_load((DEPLOY / "prometheus" / "tamias.rules.yaml").read_text())["groups"][0]["rules"]
    used = {name for rule in rules for name in re.findall(r"tamias_\w+", rule["expr"])}
    source = Path(health.__file__).read_text() + Path(attention.__file__).read_text()
    assert used
    assert [name for name in used if f'"{name}"' not in source] == []
    kinds = {kind for rule in rules for kind in re.findall(r'kind="(\w+)"', rule["expr"])}
    assert kinds == set(get_args(AlertKind))


@pytest.mark.parametrize("unit", UNITS, ids=lambda each: each.name)
def test_a_unit_has_a_ceiling_of_memory_and_outlives_a_sandbox(unit):
    """Without the policy, systemd ends the whole unit when the kernel ends one of its processes."""
    lines = unit.read_text().splitlines()
    assert {"MemoryMax=75%", "OOMPolicy=continue"} <= {
        *lines[lines.index("[Service]") : lines.index("[Install]")]
    }

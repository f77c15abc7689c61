"""What stands in deploy/ fits the program: verbs, options, ports, volumes and metrics exist."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import pytest
import yaml

from tamias.cli.main import cli
from tamias.serve.alerts.attention import AlertKind
from tamias.serve.http import health

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
    assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
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


def test_the_manifests_are_taken_by_kustomize():
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    done = subprocess.run(
        ["kubectl", "kustomize", DEPLOY / "kubernetes"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    built = list(yaml.safe_load_all(done.stdout))
    assert {each["metadata"]["namespace"] for each in built} == {"tamias"}
    assert len(built) == len(OBJECTS)


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
    source = Path(health.__file__).read_text()
    assert used
    assert [name for name in used if f'"{name}"' not in source] == []
    kinds = {kind for rule in rules for kind in re.findall(r'kind="(\w+)"', rule["expr"])}
    assert kinds == set(get_args(AlertKind))

"""`make release`: builds the wheel, tries it in a bare environment, and writes what goes with it.

Into build/release: the wheel, an SBOM (CycloneDX 1.6) of all that it installs, the notes of this version from
CHANGELOG.md, and the SHA-256 of each. Nothing is published.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
import zipfile
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_DOCUMENT = b'<http://example.org/a> <http://example.org/b> "c" .\n'


def main() -> None:
    """Builds and checks; ends with an error where something does not fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--no-trial", action="store_true", help="do not install the wheel")
    words = parser.parse_args()
    words.out.mkdir(parents=True, exist_ok=True)
    for old in words.out.iterdir():
        old.unlink()
    version = version_of((ROOT / "src" / "tamias" / "__init__.py").read_text(encoding="utf-8"))
    notes = notes_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    wheel = build(words.out)
    check_contents(wheel)
    if not words.no_trial:
        try_out(wheel, version)
    requirements = (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8")
    bom = sbom(version, requirements, wheel, datetime.now(UTC))
    (words.out / f"tamias-{version}.cdx.json").write_text(json.dumps(bom, indent=1) + "\n", encoding="utf-8")
    (words.out / f"CHANGES-{version}.md").write_text(notes, encoding="utf-8")
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in sorted(words.out.iterdir()))
    (words.out / "SHA256SUMS").write_text(sums, encoding="utf-8")
    sys.stdout.write(sums)


def version_of(source: str) -> str:
    """What the package says of itself.

    >>> version_of('__version__ = "1.2.3"')
    '1.2.3'
    """
    found = re.search(r'^__version__ = "([0-9]+\.[0-9]+\.[0-9]+)"$', source, re.MULTILINE)
    if found is None:
        raise SystemExit("src/tamias/__init__.py has no __version__ such as 1.2.3")
    return found[1]


def notes_of(changelog: str, version: str) -> str:
    """The part of the changelog about a version.

    >>> notes_of("# Changelog\\n\\n## 1.1.0\\n\\n- new\\n\\n## 1.0.0\\n\\n- first\\n", "1.1.0")
    '## 1.1.0\\n\\n- new\\n'
    """
    found = re.search(rf"^## {re.escape(version)}\b.*?(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(
            f"CHANGELOG.md has nothing about {version}: name its first heading after the version"
        )
    return found[0].rstrip() + "\n"


def build(folder: Path) -> Path:
    """The wheel."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_contents(wheel: Path) -> None:
    """Every file of the package is in the wheel; so are the libraries of the pages."""
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    tracked = subprocess.run(
        ["git", "ls-files", "src/tamias"], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout.split("\n")
    wanted = {path.removeprefix("src/") for path in tracked if path}
    wanted |= {f"tamias/features/pages/libraries/{name}" for name in ("htmx.min.js", "yasgui.min.js")}
    if missing := sorted(wanted - names):
        raise SystemExit(f"the wheel lacks {', '.join(missing[:10])}; {len(missing)} files in all")


def try_out(wheel: Path, version: str) -> None:
    """Installs the wheel and the pinned packages into an environment of their own, and uses it."""
    with tempfile.TemporaryDirectory(prefix="tamias-release-") as folder:
        place = Path(folder)
        subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
        pip = [place / "venv" / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
        pinned = ROOT / "requirements" / "run.txt"
        subprocess.run([*pip, "--require-hashes", "-r", pinned], check=True)
        subprocess.run([*pip, "--no-deps", wheel], check=True)
        (place / "a.nt").write_bytes(_DOCUMENT)

        def tamias(*words: str) -> str:
            command = [place / "venv" / "bin" / "tamias", *words]
            done = subprocess.run(
                command,
                check=False,
                capture_output=True,
                cwd=place,
                env={"PATH": "/usr/bin:/bin", "HOME": folder},
            )
            if done.returncode != 0:
                raise SystemExit(f"tamias {' '.join(words)} failed:\n{done.stderr.decode()}")
            return done.stdout.decode()

        if version not in tamias("--version"):
            raise SystemExit(f"the installed wheel does not say that it is {version}")
        if tamias("read", "a.nt", "--format", "nquads").encode().split() != _DOCUMENT.split():
            raise SystemExit("the installed wheel does not read N-Triples")
        check_types(place)
        tamias("demo", "--once", "--data", str(place / "demo"))
        tamias("check", "--data", str(place / "demo"))


def check_types(place: Path) -> None:
    """A user's script is typed throughout by what the wheel holds, under mypy and, where it is, pyright."""
    script = place / "user_script.py"
    script.write_text(
        (ROOT / "tests" / "unit" / "user_script.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    python = place / "venv" / "bin" / "python"
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-executable", python]
    commands = [[*mypy, script.name]]
    if pyright := shutil.which("pyright"):
        commands.append([pyright, "--pythonpath", python, script.name])
    for command in commands:
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=place)
        if done.returncode != 0:
            raise SystemExit(f"the types of the installed wheel are not complete:\n{done.stdout}")


def sbom(version: str, requirements: str, wheel: Path, now: datetime) -> dict[str, Any]:
    """What the wheel installs, by name, version and hashes, as CycloneDX."""
    name = f"pkg:pypi/tamias@{version}"
    parts = components(requirements)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {
            "timestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": name,
                "name": "tamias",
                "version": version,
                "purl": name,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "hashes": [{"alg": "SHA-256", "content": digest(wheel)}],
            },
        },
        "components": parts,
        "dependencies": [{"ref": name, "dependsOn": [part["bom-ref"] for part in parts]}],
    }


def components(requirements: str) -> list[dict[str, Any]]:
    """The pinned packages of a file of requirements; the hashes are those of their files on PyPI.

    >>> text = "a-b==1.0 ; python_version < '4' \\\\\\n    --hash=sha256:" + 64 * "0"
    >>> [(part["purl"], len(part["externalReferences"])) for part in components(text)]
    [('pkg:pypi/a-b@1.0', 1)]
    """
    found: list[dict[str, Any]] = []
    for line in requirements.splitlines():
        if named := _REQUIREMENT.match(line):
            name = re.sub(r"[-_.]+", "-", named[1]).lower()
            purl = f"pkg:pypi/{name}@{named[2]}"
            found.append(
                {
                    "type": "library",
                    "bom-ref": purl,
                    "name": name,
                    "version": named[2],
                    "purl": purl,
                    "externalReferences": [
                        {
                            "type": "distribution",
                            "url": purl,
                            "hashes": [],
                        }
                    ],
                }
            )
        if found and (hashed := _HASH.search(line)):
            hashes = found[-1]["externalReferences"][0]["hashes"]
            hashes.append({"alg": "SHA-256", "content": hashed[1]})
    return found


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()

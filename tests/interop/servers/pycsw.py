"""pycsw: a Catalogue Service for the Web over SQLite, which gives at most 40 records on a page."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from servers.packages import NotRun, pip
from servers.running import free_port, running

MOST_RECORDS = 40
_CONFIG = """
[server]
home={home}
url=http://127.0.0.1:{port}/
mimetype=application/xml; charset=UTF-8
encoding=UTF-8
language=en-US
maxrecords={most}
profiles=apiso
federatedcatalogues=

[manager]
transactions=false
allowed_ips=127.0.0.1

[metadata:main]
identification_title=Town catalogue
identification_abstract=Records of the town
identification_keywords=town
identification_keywords_type=theme
identification_fees=None
identification_accessconstraints=None
provider_name=Town
provider_url=https://town.example.org/
contact_name=Desk
contact_position=Desk
contact_address=Street
contact_city=Town
contact_stateorprovince=Land
contact_postalcode=12345
contact_country=Land
contact_phone=+1
contact_fax=+1
contact_email=desk@example.org
contact_url=https://town.example.org/
contact_hours=0800h
contact_instructions=none
contact_role=pointOfContact

[repository]
database=sqlite:///{folder}/records.db
table=records

[metadata:inspire]
enabled=false
"""
_SERVE = """
import sys
from wsgiref.simple_server import make_server
from pycsw.wsgi import application
make_server("127.0.0.1", int(sys.argv[1]), application).serve_forever()
"""


@contextmanager
def start(folder: Path, records: Mapping[str, str]) -> Iterator[str]:
    """The address of a server with these records in ISO 19139, by the names of their files."""
    programs = pip("pycsw==2.6.2", "SQLAlchemy<2", "setuptools<81")
    port = free_port()
    config, source = folder / "default.cfg", folder / "source"
    config.write_text(_CONFIG.format(home=folder, port=port, most=MOST_RECORDS, folder=folder))
    source.mkdir()
    for name, record in records.items():
        (source / f"{name}.xml").write_text(record, encoding="utf-8")
    admin = [programs / "python", programs / "pycsw-admin.py", "-f", config]
    for words in (["-c", "setup_db"], ["-c", "load_records", "-p", source]):
        done = subprocess.run([*admin, *words], capture_output=True, text=True, cwd=folder, check=False)
        if done.returncode:
            raise NotRun(f"pycsw-admin {words[1]}: {(done.stderr or done.stdout)[-300:]}")
    url = f"http://127.0.0.1:{port}/"
    command = [programs / "python", "-c", _SERVE, str(port)]
    with running(command, url, folder, environment={"PYCSW_CONFIG": str(config)}):
        yield url

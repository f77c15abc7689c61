"""`tamias prove`: a bundle that shows when a version existed."""

import zipfile
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import click

from tamias.cli.console.options import CommonOptions, archive_at, common, say_json
from tamias.cli.console.output import to_output
from tamias.model.errors import UsageError

README = """\
# Proof that a version existed

`body` is what an address gave; `version.txt` says which address and when. `path.txt` leads from the digest of
`version.txt` to the root of a tree over versions that the archive captured that day. `timestamp.tsr` is a
timestamp of this root (RFC 3161) by {tsa}.

Get the certificates of this timestamp authority from a place that you trust, as `tsa.pem`, and run with sh:

```sh
grep "^sha256: $(sha256sum < body | cut -c 1-64)$" version.txt
node=$(sha256sum < version.txt | cut -c 1-64)
while read -r left right; do
  if [ "$left" = - ]; then left=$node; else right=$node; fi
  node=$(printf '%s%s' "$left" "$right" | sha256sum | cut -c 1-64)
done < path.txt
openssl ts -verify -digest "$node" -in timestamp.tsr -CAfile tsa.pem
openssl ts -reply -in timestamp.tsr -text | grep "Time stamp"
```

The first command must print the digest, the last but one `Verification: OK`. Then `version.txt` and `body`
existed at the time that the last one prints, and were not changed since. That the address gave this body at
the time in `version.txt` is what the archive says: the timestamp proves that it said so by then.
"""


@click.command()
@click.argument("url")
@click.option("--at", metavar="TIME", help="The version that was current then: RFC 3339 or YYYYMMDDhhmmss.")
@click.option("--allow-private", is_flag=True, help="Allow a timestamp server at a private address.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Zip file to write. [stdout]")
@common
def command(
    place: CommonOptions, url: str, at: str | None, *, allow_private: bool, output: Path | None
) -> None:
    """Writes a zip file that proves when a version existed, which anybody can verify without Tamias.

    With proof.tsa set, 'tamias serve' stamps each day that is over; a version without timestamp is
    stamped now.

    Example: tamias prove https://example.org/data.csv -o proof.zip
    """
    from tamias.archive.moments import rfc3339
    from tamias.features.exports.packages import ZipPackage
    from tamias.features.proof.stamps import stamped_tree
    from tamias.features.proof.tree import path_of, root_of, version_text

    if place.json and output is None:
        raise UsageError("with --json, name a file for the proof: -o FILE")
    settings = place.settings(permit__allow_private=allow_private or None).settings
    with archive_at(place) as archive:
        content = archive.get(url, at=at)
        version = content.version
        text = version_text(content.resource.url, version.captured_at, version.sha256)
        tree = stamped_tree(archive.session, settings, text, version.captured_at)
        path = path_of(tree.leaves, sha256(text.encode()).digest())

        def write(out: BinaryIO) -> None:
            with zipfile.ZipFile(out, "w") as zipped:
                package = ZipPackage(zipped)
                package.add("body", content.pieces())
                package.add("version.txt", [text.encode()])
                package.add("path.txt", [path.encode()])
                package.add("timestamp.tsr", [tree.token])
                package.add("README.md", [README.format(tsa=tree.tsa).encode()])

        to_output(write, output)
    captured_at, stamped_at = rfc3339(version.captured_at), rfc3339(tree.stamped_at)
    if place.json:
        digests = {"sha256": version.sha256, "root": root_of(tree.leaves).hex()}
        times = {"captured_at": captured_at, "stamped_at": stamped_at}
        say_json({"url": content.resource.url, **times, **digests, "tsa": tree.tsa})
    else:
        click.echo(f"captured {captured_at}, existed at {stamped_at} by {tree.tsa}", err=True)

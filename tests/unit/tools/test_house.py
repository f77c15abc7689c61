"""The measures of a code base, on a small one whose measures are plain to see."""

import runpy
import zipfile
from pathlib import Path

TOOL = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "house.py"))

CODE = """class Page:
    def __init__(self, a, b=1, *, c=2): ...


class Line:
    def __init__(self): ...
"""


def write_package(folder):
    (folder / "full").mkdir(parents=True)
    for name in ["__init__", *(f"module{number}" for number in range(16))]:
        (folder / "full" / f"{name}.py").write_text("class Page: ...\n" if name == "module3" else "")
    (folder / "__init__.py").write_text(CODE)
    (folder / "queries.sql").write_text("SELECT 1;\n" * 100)


def test_a_folder_is_measured(tmp_path, capsys):
    write_package(tmp_path / "small")
    assert TOOL["main"]([str(tmp_path / "small")]) == 0
    measured = "| small | 19 | 107 | 0 | 18 | 1 of 2 | small/full 16 | 3 (Page) |  |"
    assert capsys.readouterr().out.splitlines()[-1] == measured


def test_of_a_wheel_the_package_is_measured_and_its_size_told(tmp_path, capsys):
    write_package(tmp_path / "small")
    with zipfile.ZipFile(tmp_path / "small-1.0-py3-none-any.whl", "w") as wheel:
        for file in (tmp_path / "small").rglob("*.*"):
            wheel.write(file, file.relative_to(tmp_path))
        wheel.writestr("small-1.0.dist-info/METADATA", bytes(2000))
    assert TOOL["main"]([str(tmp_path / "small-1.0-py3-none-any.whl")]) == 0
    size = f"{(tmp_path / 'small-1.0-py3-none-any.whl').stat().st_size / 1000:,.0f} kB"
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"| small-1.0 | 19 | 107 | 0 | 18 | 1 of 2 | small/full 16 | 3 (Page) | {size} |"
    )

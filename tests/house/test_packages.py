"""What is built for a release: for which Pythons, and what its check refuses."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

SBOM = "topoplace-0.1.0.dist-info/sboms/topoplace.cdx.json"
NEEDED = [
    "topoplace/__init__.py",
    "topoplace/_core.pyi",
    "topoplace/py.typed",
    "topoplace/discovery/unread_tools.toml",
    "topoplace/cli/explorer/page.html",
    "topoplace/cli/explorer/page.css",
    "topoplace/cli/explorer/page.js",
    "topoplace/_core.cpython-313-x86_64-linux-gnu.so",
    "topoplace-0.1.0.data/data/share/man/man1/topoplace.1",
    "topoplace-0.1.0.dist-info/METADATA",
]


def parts(topoplace: str = "0.1.0", pybind11: str = "3.1.0") -> dict[str, Any]:
    """Return a list of parts as a wheel has it."""

    def part(name: str, version: str) -> dict[str, str]:
        return {"name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}

    return {
        "bomFormat": "CycloneDX",
        "metadata": {"component": part("topoplace", topoplace)},
        "components": [part("pybind11", pybind11)],
    }


@pytest.fixture
def check(repository: Path, tmp_path: Path) -> Callable[..., int]:
    """Write a wheel of these files and check it."""
    main = runpy.run_path(str(repository / "tools" / "check_wheel.py"))["main"]

    def checked(names: list[str], bom: dict[str, Any] | None) -> int:
        with zipfile.ZipFile(tmp_path / "topoplace-0.1.0-cp313-cp313-linux_x86_64.whl", "w") as wheel:
            for name in names:
                wheel.writestr(name, "")
            if bom is not None:
                wheel.writestr(SBOM, json.dumps(bom))
        code: int = main(str(tmp_path))
        return code

    return checked


def test_a_whole_wheel_passes(check: Callable[..., int]) -> None:
    assert check(NEEDED, parts()) == 0


def test_a_repaired_wheel_has_folders(check: Callable[..., int]) -> None:
    assert check([*NEEDED, "topoplace/", "topoplace-0.1.0.dist-info/sboms/"], parts()) == 0


@pytest.mark.parametrize(
    ("names", "bom", "told"),
    [
        ([*NEEDED, "tests/conftest.py"], parts(), "tests/conftest.py: does not belong"),
        ([*NEEDED, "topoplace-0.1.0.dist-info/notes"], parts(), "notes: does not belong"),
        (NEEDED[1:], parts(), "topoplace/__init__.py: missing"),
        ([name for name in NEEDED if ".so" not in name], parts(), "topoplace/_core*.so: missing"),
        (NEEDED, None, "the list of parts: missing"),
        (NEEDED, parts(topoplace="0.2.0"), "another version than 0.1.0"),
        (NEEDED, parts(pybind11="@pybind11_VERSION@"), "pybind11 has the version '@pybind11_VERSION@'"),
        (NEEDED, parts() | {"components": []}, "lacks pybind11"),
    ],
)
def test_other_wheels_do_not(
    check: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    names: list[str],
    bom: dict[str, Any] | None,
    told: str,
) -> None:
    assert check(names, bom) == 1
    assert told in capsys.readouterr().out


def test_a_folder_without_wheels_does_not_pass(repository: Path, tmp_path: Path) -> None:
    main = runpy.run_path(str(repository / "tools" / "check_wheel.py"))["main"]
    assert main(str(tmp_path)) == 1


def test_one_list_of_pythons(repository: Path) -> None:
    """Classifiers, wheels, tests and the documents name the same versions."""
    settings = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))
    prefix = "Programming Language :: Python :: 3."
    minors = [
        kind.removeprefix(prefix) for kind in settings["project"]["classifiers"] if kind.startswith(prefix)
    ]
    wheels = settings["tool"]["cibuildwheel"]["build"].split()
    assert [name for name in wheels if "t-" not in name] == [f"cp3{minor}-*" for minor in minors]
    assert settings["project"]["requires-python"] == f">=3.{minors[0]}"
    workflow = yaml.safe_load((repository / ".github" / "workflows" / "test.yml").read_text("utf-8"))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in minors]
    text = " ".join((repository / "CONTRIBUTING.md").read_text("utf-8").split())
    assert f"now 3.{minors[0]} to 3.{minors[-1]}." in text


def test_each_night_goes_deeper_wherever_there_is_more_to_try(repository: Path) -> None:
    """What a change is tested with is a part of what the profile `deep` does."""
    workflow = yaml.safe_load((repository / ".github" / "workflows" / "nightly.yml").read_text("utf-8"))
    folders = [repository / name for name in ("tests", "lab/tests", "hosts/tests")]
    deeper = {
        path.relative_to(repository).as_posix().partition("tests/")[0]
        + "tests/"
        + path.relative_to(tests).parts[0]
        for tests in folders
        for path in tests.rglob("test_*.py")
        if re.search(
            r"@given\(|\b(?:thorough|share)\(|mark\.deep|\brun_state_machine_as_test\(|StateMachine\)",
            path.read_text("utf-8"),
        )
    }
    listed = workflow["jobs"]["properties"]["strategy"]["matrix"]["tests"]
    assert deeper <= set(listed)
    assert [name for name in listed if not (repository / name).exists()] == []
    assert "tests/kernels" in deeper

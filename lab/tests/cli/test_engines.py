"""Sweeps on clusters of Dask and Ray give the table that processes give; both run where they are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import Call, run

PLAN = 'policies = ["fcfs", "mapa-greedy"]\ntopologies = ["minsky", "summit"]\nseeds = 2\nnum-jobs = 10\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def dask_address() -> Iterator[str]:
    distributed: Any = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def ray_address() -> Iterator[str]:
    cluster_utils: Any = pytest.importorskip("ray.cluster_utils")
    cluster = cluster_utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False}
    )
    yield cluster.address
    cluster.shutdown()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_a_cluster_gives_the_same_bytes(request: pytest.FixtureRequest, engine: str) -> None:
    address = request.getfixturevalue(f"{engine}_address")
    there = run("sweep", "plan.toml", "-o", "there", "--engine", engine, "--address", address)
    assert there.returncode == 0, there.stderr
    assert run("sweep", "plan.toml", "-o", "here", "--workers", "1").returncode == 0
    (table,) = Path("here").glob("sweep.*[tv]")  # parquet or csv
    assert (Path("there") / table.name).read_bytes() == table.read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--engine dask", "--engine dask needs --address, where the cluster is"),
        ("--engine ray --address=", "--engine ray needs --address, where the cluster is"),
        ("--address tcp://a:1", "--address is for --engine dask and --engine ray"),
        ("--engine ray --address a:1 --workers 2", "--workers is for processes; --engine ray has its own"),
    ],
)
def test_options_that_do_not_go_together(call: Call, options: str, message: str) -> None:
    done = call("sweep", "plan.toml", "-o", "out", *options.split())
    assert (done.code, done.out, done.err) == (2, "", f"topoplace: {message}\n")


@pytest.mark.parametrize(("engine", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_package_is_named(
    call: Call, monkeypatch: pytest.MonkeyPatch, engine: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    done = call("sweep", "plan.toml", "-o", "out", "--engine", engine, "--address", "a:1")
    assert done.code == 2
    assert f"the engine {engine} needs {engine.title()}: pip install 'topoplace-" in done.err

"""A second process that answers the same cases under another hash seed of Python.

Text is hashed differently there, so an answer that depends on the order of a set of names is likely to differ.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import TYPE_CHECKING, Any

from topoplace.testing.answers import explained_text, placed_text, plan_text, queue_of, refused_text

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.policy import Policy
    from topoplace.jobs.job_graph import JobGraph

Answers = list[str]
"""The answers of a policy to a job or a queue, as text: equal answers give equal text."""
_HASH_SEEDS = ("1", "2")
_PROGRAM = "from topoplace.testing.second_process import main; main()"
running_here = False
"""True in the second process."""


class NoSecondProcessError(Exception):
    """The policy cannot be checked in a second process; the message says why."""


@contextmanager
def other_hash_seed(
    given: object, build: Callable[[], Policy], clusters: Sequence[Cluster], jobs: Sequence[JobGraph]
) -> Generator[Callable[[], list[Answers]]]:
    """Start answering all cases in a process with another hash seed; yield a function that waits for the answers.

    The answers are a list per cluster: `place` and `explain` of each job, then `plan`. Entering the block or calling
    the function raises NoSecondProcessError if there are no answers.

    given: the policy or its factory. build: returns a new policy. `given` or the new policy must be picklable.
    """
    cases = pickle.dumps((*_pickled(given, build()), (clusters, jobs)))
    seed = _HASH_SEEDS[os.environ.get("PYTHONHASHSEED") == _HASH_SEEDS[0]]
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    program = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths},
    )
    with program as process:
        try:
            _send(cases, process)
            yield lambda: _received(process)
        finally:
            process.kill()


def main() -> None:
    """Answer the cases in standard input, and write the answers to standard output."""
    global running_here
    running_here = True
    sources, policy, cases = pickle.load(sys.stdin.buffer)
    output = sys.stdout.buffer
    with contextlib.redirect_stdout(sys.stderr):  # whatever the policy prints
        for name, path in sources.items():
            _load(name, path)
        given: Any = pickle.loads(policy)
        subject = given() if isinstance(given, type) or not hasattr(given, "place") else given
        answers = [_answers(subject, cluster, cases[1]) for cluster in cases[0]]
    output.write(pickle.dumps(answers))


def _send(data: bytes, process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin:  # a process that has ended says why
        process.stdin.write(data)
    process.stdin = None


def _received(process: subprocess.Popen[bytes]) -> list[Answers]:
    output, errors = process.communicate()
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines() or ["no message"]
        raise NoSecondProcessError(f"the second process ended with {lines[-1]}")
    answers: list[Answers] = pickle.loads(output)
    return answers


def _answers(policy: Policy, cluster: Cluster, jobs: Sequence[JobGraph]) -> Answers:
    """Return the policy's answers to each job, and its plan for all of them."""

    def text(ask: Callable[[], str]) -> str:
        try:
            return ask()
        except Exception as error:
            return refused_text(error)

    answers: Answers = []
    for job in jobs:
        answers.append(text(lambda job=job: placed_text(policy.place(job, cluster))))  # type: ignore[misc]
        answers.append(text(lambda job=job: explained_text(policy.explain(job, cluster))))  # type: ignore[misc]
    answers.append(text(lambda: plan_text(policy.plan(queue_of(jobs), cluster, float(len(jobs))))))
    return answers


def _pickled(given: object, policy: Policy) -> tuple[dict[str, str], bytes]:
    """Return one of both objects pickled, and the files of the modules that define it, by the modules' names."""
    try:
        return _sources(given), pickle.dumps(given)
    except Exception:  # pickling runs code of the policy
        pass
    try:
        return _sources(policy), pickle.dumps(policy)
    except Exception as error:
        raise NoSecondProcessError(f"the policy cannot be pickled: {error}") from error


def _sources(given: object) -> dict[str, str]:
    """Return the file of each module that defines a function, or the class of an object and its bases, bases first."""
    if isinstance(given, FunctionType):
        names = [given.__module__]
    else:
        classes = (given if isinstance(given, type) else type(given)).__mro__
        names = [cls.__module__ for cls in reversed(classes)]
    files = {name: getattr(sys.modules.get(name), "__file__", None) for name in names}
    return {name: path for name, path in files.items() if path}


def _load(name: str, path: str) -> None:
    """Import a module by its name or, if that fails or it is the main program, from its file."""
    if name != "__main__":
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
            return
    as_name = "__mp_main__" if name == "__main__" else name
    spec = importlib.util.spec_from_file_location(as_name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    sys.modules[name] = sys.modules[as_name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

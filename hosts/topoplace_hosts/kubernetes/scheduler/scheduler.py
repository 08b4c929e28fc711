"""Scheduler: applies events of the API server, decides for waiting pods, and binds them."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, Full, Queue
from threading import Event
from typing import Final

from topoplace.engine.policy import Policy
from topoplace.placement import Refusal
from topoplace.topology.topology import Topology
from topoplace_hosts import log
from topoplace_hosts.journal import Journal
from topoplace_hosts.kubernetes.claims.allocation_json import Planned
from topoplace_hosts.kubernetes.claims.selecting import NotYetError
from topoplace_hosts.kubernetes.client import api
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.client.connection import ApiError, Connection
from topoplace_hosts.kubernetes.client.watch import Kind, News, Watcher
from topoplace_hosts.kubernetes.metrics import PodFigures
from topoplace_hosts.kubernetes.objects.annotations import GPUS
from topoplace_hosts.kubernetes.objects.pod import GPU, Pod
from topoplace_hosts.kubernetes.scheduler.calls import Calls, RequestOutcome, settled
from topoplace_hosts.kubernetes.scheduler.claiming.claim_intake import KINDS, ClaimIntake
from topoplace_hosts.kubernetes.scheduler.claiming.placing import unused
from topoplace_hosts.kubernetes.scheduler.claiming.writing import bind_with_claims, take_back
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.deciding import Postponed, decide
from topoplace_hosts.kubernetes.scheduler.decisions import Decisions
from topoplace_hosts.kubernetes.scheduler.intake import Intake, why
from topoplace_hosts.kubernetes.scheduler.preempting import may_make_room, room_for
from topoplace_hosts.kubernetes.scheduler.seats import Seats
from topoplace_hosts.kubernetes.scheduler.waiting import Unit, WaitingPods

_IDLE_S = 0.5
_LISTEN_S = 0.01
_BINDERS: Final = 4
_MOST_NEWS = 1 << 14
_MOST_REPORTS = 1000
_PREEMPT_AGAIN_S = 1.0
"""Least number of seconds between two searches for pods that could end in favour of the same pods."""
_MEASURE_S = 10.0
_LATER_S = 1.0
"""Seconds that a pod waits after the API server refused to bind it."""
_MOST_LATER_S = 30.0


class Scheduler:
    """Gives a node and GPUs to the pods that name this scheduler in `schedulerName`.

    The API server has the whole state, and the journal the bindings under way. One scheduler runs at a time; after it
    is killed at any moment, the next one continues.
    """

    def __init__(
        self,
        topology: Topology,
        policy: Policy,
        access: Access,
        *,
        name: str = "topoplace",
        gpu_resource: str = GPU,
        journal: Journal | None = None,
        reserve_s: float = 60.0,
        figures: PodFigures | None = None,
        write_log: log.Log = log.nowhere,
    ) -> None:
        """Schedule on the machines of `topology`, whose names are those of nodes.

        name: the `schedulerName` of its pods. gpu_resource: the resource that counts GPUs. journal: open for writing in
        the thread that calls `run`; None for none. reserve_s: seconds for which the GPUs of pre-empted pods are kept
        for the pods that need them. figures: the counts, which the next scheduler may continue.
        """
        self.figures = figures or PodFigures()
        self._measures = figures is not None
        self.state = ClusterState(topology, gpu_resource)
        self.waiting = WaitingPods(name)
        self._policy = policy
        self._access = access
        self._decisions = Decisions(self.state, journal, self.figures)
        self._reserve_s = reserve_s
        self._log = write_log
        self._intake = Intake(self.state, self.waiting, self._decisions, self.figures, write_log)
        self._claim_intake = ClaimIntake(self.state, self.figures, write_log)
        self._news: Queue[News | RequestOutcome] = Queue(_MOST_NEWS)
        self._refused: dict[str, tuple[int, object]] = {}
        self._reported: dict[str, str] = {}
        self._reserved: dict[str, tuple[Seats, float]] = {}
        self._preempted_at: dict[str, float] = {}
        self._later: dict[str, float] = {}
        """The time before which pods are not decided again, by uid."""
        self._set_asides: dict[str, int] = {}
        """How often units were set aside, by their keys."""
        self._patient: dict[str, float] = {}
        """When units that wait for certain nodes are decided again, by their keys, even if no GPU is free before."""
        self._measured_at = -_MEASURE_S

    def run(self, stop: Event, ready: Callable[[], None] = lambda: None) -> None:
        """Schedule until `stop` is set. ready: called once when nodes and pods are known."""
        self._binders = Calls(self._access, _BINDERS, _MOST_NEWS)
        self._reporter = Calls(self._access, 1, _MOST_REPORTS)
        self.state.claims.selecting.start()
        kinds: tuple[Kind, ...] = ("nodes", "pods", *KINDS)
        watchers = [Watcher(self._access, kind, partial(self._tell, stop)) for kind in kinds]
        for watcher in watchers:
            watcher.start()
        try:
            is_ready = False
            while not stop.is_set():
                self._take_news()
                if not (self._intake.is_complete and self._claim_intake.is_complete):
                    continue
                if not is_ready:
                    is_ready = True
                    self._resume()
                    ready()
                self._decide_all()
                self._decisions.write_ended()
                self._measure()
        finally:
            self._binders.stop()
            self._reporter.stop()
            for watcher in watchers:
                watcher.stop()

    # ---- news --------------------------------------------------------------------------------------------------

    def _tell(self, stop: Event, news: News) -> None:
        while not stop.is_set():
            try:
                self._news.put(news, timeout=_IDLE_S)
            except Full:
                continue
            return

    def _take_news(self) -> None:
        """Take all news that are there; wait a little if there are none."""
        try:
            news = self._news.get(timeout=_IDLE_S)
        except Empty:
            return
        for _ in range(_MOST_NEWS):
            if isinstance(news, RequestOutcome):
                self._end_binding(news)
            elif news.kind in KINDS:
                self._claim_intake.take(news)
            else:
                self._intake.take(news)
            try:
                news = self._news.get_nowait()
            except Empty:
                return

    # ---- decisions ---------------------------------------------------------------------------------------------

    def _resume(self) -> None:
        """Go on with the bindings that an earlier scheduler has decided and may not have made."""
        self._log(
            "ready", nodes=len(self.state.table.row_of), pods=len(self.state.pods), waiting=len(self.waiting)
        )
        for seat in self._decisions.resumed(self.waiting):
            self._start((seat,))

    def _decide_all(self) -> None:
        """Decide for all units that may fit now."""
        self._keep_reservations()
        self._later = {uid: end for uid, end in self._later.items() if end > time.monotonic()}
        failed: dict[object, Refusal] = {}
        units = self.waiting.units(self.state.groups)
        for unit in units:
            now = self.state.freed, tuple([(pod.uid, pod.claims) for pod in (*unit.pods, *unit.rest)])
            if self._is_known(unit, now) or unit.key in self._reserved or self._is_late(unit):
                continue
            demand = _demand(unit)
            found = (failed.get(demand) if demand else None) or self._decided(unit)
            if isinstance(found, Refusal):
                self._note_patience(unit, found)
                if not self._is_late(unit):
                    self._refused[unit.key] = self.state.freed, now[1]
                if demand:
                    failed[demand] = found
                self._refuse(unit, found)
            else:
                self._start(found)
        if len(self._reported) > 2 * len(units) + 64:
            self._forget_all_but({unit.key for unit in units})

    def _measure(self) -> None:
        """Note what is so now, from time to time."""
        self.figures.waiting = len(self.waiting)
        if self._measures and time.monotonic() >= self._measured_at + _MEASURE_S:
            self._measured_at = time.monotonic()
            self.figures.fragmentation = self.state.fragmentation()
            self.figures.closed_nodes = self.state.closed_nodes()

    def _note_patience(self, unit: Unit, found: Refusal) -> None:
        self._patient.pop(unit.key, None)
        if isinstance(found, Postponed):
            self._patient[unit.key] = time.monotonic() + found.seconds

    def _is_known(self, unit: Unit, now: tuple[int, object]) -> bool:
        """Return True if a unit was refused, nothing has changed, and it does not wait for too long."""
        in_time = self._patient.get(unit.key, math.inf) > time.monotonic()
        return in_time and self._refused.get(unit.key) == now

    def _is_late(self, unit: Unit) -> bool:
        return bool(self._later) and any(pod.uid in self._later for pod in unit.pods)

    def _forget_all_but(self, keys: set[str]) -> None:
        self._refused = {key: value for key, value in self._refused.items() if key in keys}
        self._reported = {key: value for key, value in self._reported.items() if key in keys}
        self._preempted_at = {key: value for key, value in self._preempted_at.items() if key in keys}
        self._set_asides = {key: value for key, value in self._set_asides.items() if key in keys}
        self._patient = {key: value for key, value in self._patient.items() if key in keys}

    def _decided(self, unit: Unit) -> Seats | Refusal:
        if unit.reason:
            return Refusal(unit.reason)
        try:
            return decide(self._policy, self.state, unit.pods, self.waiting.waited_s(unit.pods), unit.rest)
        except NotYetError as error:
            self._set_aside(unit, error.after_s)
            return Refusal(str(error), permanent=True)
        except Exception as error:  # what one tenant asks for must not end the decisions for all
            self.figures.failed_decisions += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            self._log(
                "decision_failed", unit=unit.key, error=f"{why(error)} ({where.name}, line {where.lineno})"
            )
            self._set_aside(unit, _LATER_S)
            return Refusal(f"the decision failed: {why(error)}", permanent=True)

    def _set_aside(self, unit: Unit, after_s: float) -> None:
        """Decide for a unit later, and each time later still."""
        tries = self._set_asides[unit.key] = self._set_asides.get(unit.key, 0) + 1
        end = time.monotonic() + max(after_s, min(_MOST_LATER_S, _LATER_S * 2.0 ** min(tries, 16) / 8))
        self._later.update(dict.fromkeys([pod.uid for pod in unit.pods], end))

    def _start(self, seats: Seats) -> None:
        """Hold the seats, write them down, and bind the pods."""
        self.figures.decided += len(seats)
        self.figures.note_latency(self.waiting.waited_s(seat.pod for seat in seats))
        bound = [self.state.assume(*seat) for seat in seats]
        self._decisions.intend(seats)
        for pod, seat in zip(bound, seats, strict=True):
            self.waiting.remove_pod(pod.uid)
            self._refused.pop(pod.uid, None)
            self._set_asides.pop(pod.uid, None)
            self._binders.add(partial(self._bind, pod, seat.claims))

    def _bind(self, pod: Pod, claims: Sequence[Planned], connection: Connection) -> None:
        annotations = {GPUS: pod.annotations[GPUS]} if pod.requests.gpus else {}
        try:
            outcome = bind_with_claims(connection, pod, claims, annotations, self._binders.stopped)
        except Exception as error:  # else the pod would wait for an outcome, and its GPUs with it
            outcome = settled(connection, pod, why(error), self._binders.stopped)
        if outcome is not None:
            self._news.put(outcome)

    def _end_binding(self, outcome: RequestOutcome) -> None:
        pod = outcome.pod
        for value in outcome.claims:
            self._claim_intake.take_claim(value)
        if outcome.result == "freed":
            self._tell_error(pod, outcome.error)
            self._later[pod.uid] = time.monotonic() + (_LATER_S if outcome.error else 0.0)
            return
        self.state.settle_claims(pod.uid)
        self.figures.not_bound += outcome.result != "bound"
        self._log("bound" if outcome.result == "bound" else "not_bound", **_told(pod), error=outcome.error)
        if outcome.result == "bound":
            self.figures.bound += 1
            self._decisions.tell(pod)
            self._reported.pop(pod.uid, None)
            self._report(pod, "Scheduled", f"on {pod.node}, {self._gets(pod)}", warning=False)
        elif outcome.result == "gone":
            self._intake.forget(pod.uid)
        elif not self.state.is_confirmed(pod.uid):  # else a watch has shown the truth meanwhile
            self._decisions.end(pod.uid)
            self.state.remove_pod(pod.uid)
            self._later[pod.uid] = time.monotonic() + _LATER_S
            self._intake.take_pod(outcome.truth)
            if pod.uid not in self.state.pods:
                self._tell_error(pod, outcome.error)

    def _tell_error(self, pod: Pod, error: str) -> None:
        """Tell why the API server did not do what was decided for a pod, once for each reason."""
        if error and self._reported.get(pod.uid) != error:
            self._reported[pod.uid] = error
            self._log("refused", **_told(pod), error=error)
            self._report(pod, "FailedScheduling", f"the API server has refused: {error}", warning=True)

    def _gets(self, pod: Pod) -> str:
        """Return what a bound pod has got, in words."""
        if not pod.claims:
            return f"GPUs {pod.annotations.get(GPUS, 'none')}"
        claims = [self.state.claims.claims.get((pod.namespace, name)) for _, name in pod.claims]
        devices = [one for claim in claims if claim and claim.allocation for one in claim.allocation.devices]
        return f"devices {', '.join(map(str, devices)) or 'none'}"

    def _refuse(self, unit: Unit, why: Refusal) -> None:
        kind = "incomplete group" if unit.reason else "impossible" if why.permanent else "no room"
        self.figures.deferred[kind] += 1
        if not unit.reason and not why.permanent:
            self._preempt(unit)
            self._free_unused(unit)
        if self._reported.get(unit.key) != why.reason:
            self._reported[unit.key] = why.reason
            self._log("waits", unit=unit.key, pods=len(unit.pods), reason=why.reason)
            self._report(unit.pods[0], "FailedScheduling", why.reason, warning=True)

    def _free_unused(self, unit: Unit) -> None:
        """Take back the devices of claims that only a waiting pod uses: it may fit where others are."""
        for pod in unit.pods:
            if plans := unused(self.state, pod) if pod.claims else ():
                self._log("frees", unit=unit.key, claims=[str(one.claim) for one in plans])
                self._later[pod.uid] = math.inf  # decided again only when it is known what became of them
                self._binders.add(partial(self._free, pod, plans))

    def _free(self, pod: Pod, plans: Sequence[Planned], connection: Connection) -> None:
        written = take_back(connection, pod, plans, self._binders.stopped)
        if written is not None:
            self._news.put(RequestOutcome(pod, "freed", None, written.error, written.truths))

    def _report(self, pod: Pod, reason: str, message: str, *, warning: bool) -> None:
        def call(connection: Connection) -> None:
            while self._binders.is_busy and not self._reporter.stopped.wait(_LISTEN_S):
                pass  # bindings come first
            api.report(
                connection, pod.namespace, pod.name, pod.uid, reason=reason, message=message, warning=warning
            )

        self._reporter.offer(call)

    # ---- pre-emption -------------------------------------------------------------------------------------------

    def _preempt(self, unit: Unit) -> None:
        """Ask pods of lower priority to end, and keep their GPUs for a unit, if that lets it start."""
        if not may_make_room(self.state, unit.pods):
            return
        now = time.monotonic()
        next_try = self._preempted_at.get(unit.key, now - _PREEMPT_AGAIN_S) + _PREEMPT_AGAIN_S
        if now < next_try:
            self._refused.pop(unit.key, None)
            self._later.update(dict.fromkeys([pod.uid for pod in unit.pods], next_try))
            return
        self._preempted_at[unit.key] = now
        found = room_for(self._policy, self.state, unit.pods, unit.rest)
        if found is None:
            return
        seats, victims = found
        self._reserved[unit.key] = seats, now + self._reserve_s
        self.state.reserve(unit.key, [gpu for seat in seats for gpu in seat.gpus])
        self.figures.preempted += len(victims)
        for pod in victims:
            self._log("preempts", **_told(pod), unit=unit.key)
            self._report(pod, "Preempted", f"by {unit.key} of higher priority", warning=True)
            self._binders.add(partial(_evict, pod))

    def _keep_reservations(self) -> None:
        """Start those for which GPUs were kept, once these are there; give up what takes too long."""
        for key, (seats, end) in list(self._reserved.items()):
            pods = [self.waiting.get(seat.pod.uid) for seat in seats]
            is_there = self.state.is_there(key)
            if not is_there and None not in pods and time.monotonic() < end:
                continue
            del self._reserved[key]
            self.state.unreserve(key)
            if not is_there:
                self._log("reservation_ended", unit=key)
            elif all(
                pod is not None and self.state.may_run_on(pod, seat.node)
                for pod, seat in zip(pods, seats, strict=True)
            ):
                self._start(seats)


def _evict(pod: Pod, connection: Connection) -> None:
    try:
        api.evict(connection, pod.namespace, pod.name, pod.uid)
    except ApiError as error:
        if error.status != 404:
            raise


def _demand(unit: Unit) -> object:
    """Return what decides whether a single pod fits; None for groups, and pods of a group that has started."""
    if unit.reason or unit.rest or len(unit.pods) != 1 or unit.pods[0].claims:
        return None
    pod = next(iter(unit.pods))
    labels = tuple(sorted(pod.labels.items()))
    return (
        pod.requests,
        pod.place,
        pod.host_ports,
        pod.priority,
        labels,
        tuple(pod.annotations.items()),
        pod.refused,
    )


def _told(pod: Pod) -> dict[str, str]:
    return {"pod": f"{pod.namespace}/{pod.name}", "node": pod.node, "gpus": pod.annotations.get(GPUS, "")}

from __future__ import annotations

import gzip
import json
import math
import pickle
import re
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import assert_command_refuses, run
from distributions import whole
from topoplace.jobs.performance_profile import PLACEMENTS, Measurement, PerformanceProfile

NAMES = st.sampled_from(["alexnet/1", "alexnet/64", "vgg", "a/b/4", "/", 'odd, "name"\n/8', "é/", " x /2 "])
KINDS = st.tuples(NAMES, st.integers(1, 3))
SECONDS = st.just(0.0) | st.floats(1e-9, 1e15) | st.integers(0, 100)
HEADER = "kind,model,batch,gpus,placement,with_model,with_batch,with_gpus,seconds\n"


@st.composite
def profiles(draw: st.DrawFn) -> PerformanceProfile:
    kinds = draw(st.lists(KINDS, max_size=6, unique=True))
    solo = {
        (*kind, place): draw(SECONDS)
        for kind in kinds
        for place in draw(st.sets(st.sampled_from(PLACEMENTS)))
    }
    pairs = draw(st.dictionaries(st.tuples(KINDS, KINDS).map(lambda p: (*p[0], *p[1])), SECONDS, max_size=8))
    placed = {pair: draw(st.sampled_from(PLACEMENTS)) for pair in pairs if draw(st.booleans())}
    return PerformanceProfile(solo, pairs, placed)


@given(profiles())
def test_every_way_out_leads_back(profile: PerformanceProfile) -> None:
    for copy in (
        PerformanceProfile.from_csv(profile.to_csv()),
        PerformanceProfile.from_json(profile.to_json()),
        PerformanceProfile.build(profile.runs()),
        pickle.loads(pickle.dumps(profile)),
    ):
        assert copy == profile
        assert hash(copy) == hash(profile)
        assert copy.to_json() == profile.to_json()
        assert copy.worst_slowdown == profile.worst_slowdown


@given(profiles(), KINDS, KINDS)
def test_a_slowdown_is_a_measured_one_or_a_median_of_some(
    profile: PerformanceProfile, kind: tuple[str, int], other: tuple[str, int]
) -> None:
    known = {
        pair: profile.slowdown(*pair)
        for pair in profile.colocation
        if profile.solo_time(*pair[:2]) is not None
    }
    assert all(1 <= slowdown <= profile.worst_slowdown for slowdown in known.values())
    assert profile.worst_slowdown == max(known.values(), default=1.0)
    slowdown = profile.slowdown(*kind, *other)
    if (*kind, *other) not in known:
        model = kind[0].rpartition("/")[0] or kind[0]
        groups = [
            [value for pair, value in known.items() if pair[:2] == kind],
            [value for pair, value in known.items() if (pair[0].rpartition("/")[0] or pair[0]) == model],
            [value for pair, value in known.items() if pair[2:] == other],
            list(known.values()),
            [1.0],
        ]
        assert slowdown == pytest.approx(median(next(filter(None, groups))), rel=1e-12)


@given(profiles(), KINDS)
def test_times_alone(profile: PerformanceProfile, kind: tuple[str, int]) -> None:
    measured = {place: profile.solo[*kind, place] for place in PLACEMENTS if (*kind, place) in profile.solo}
    times = [profile.solo_time(*kind, place) for place in PLACEMENTS]
    assert profile.ideal_time(*kind) == min(measured.values(), default=None)
    assert (kind in profile.kinds) == bool(measured)
    for place, time in zip(PLACEMENTS, times, strict=True):
        assert time in measured.values() if measured else time is None
        assert time == measured.get(place, time)
    if measured.keys() == {"intra-socket"}:
        assert len(set(times)) == 1
    if measured.keys() == {"intra-socket", "inter-machine"}:
        assert times[1] == measured["intra-socket"]


def test_the_base_of_a_pair_is_the_class_it_ran_in() -> None:
    solo = {("a", 2, "intra-socket"): 10.0, ("a", 2, "inter-socket"): 20.0, ("b", 1, "intra-socket"): 8.0}
    pairs = {("a", 2, "a", 2): 30.0, ("b", 1, "a", 2): 10.0, ("a", 2, "b", 1): 12.0, ("c", 1, "a", 2): 5.0}
    profile = PerformanceProfile(solo, pairs, {("a", 2, "b", 1): "intra-socket"})
    assert profile.slowdown("a", 2, "a", 2) == 1.5  # nothing tells: across sockets, which was measured
    assert profile.slowdown("b", 1, "a", 2) == 1.25  # one GPU: never across sockets
    assert profile.slowdown("a", 2, "b", 1) == 1.2
    assert profile.slowdown("c", 1, "a", 2) == np.median(
        [1.5, 1.25]
    )  # no time alone: others next to ("a", 2)
    assert profile.names == ("a", "b")
    assert "3 times" in repr(profile)


def test_built_from_runs() -> None:
    runs = [Measurement("a", 2, "intra-socket", seconds) for seconds in (10.0, 11.0, 12.0, 13.0, 14.0)]
    runs += [Measurement("a", 2, "inter-socket", 20.0)]
    runs += [
        Measurement("a", 2, place, time, "b", 1)
        for place, time in zip(PLACEMENTS[:2], (24.0, 26.0), strict=True)
    ]
    profile = PerformanceProfile.build(runs)
    assert profile.solo_time("a", 2) == pytest.approx(
        13.8
    )  # the fourth and a fifth of what is between it and the last
    assert profile.colocation == {("a", 2, "b", 1): 24.0}  # 24 / 13.8 is more than 26 / 20
    assert profile.colocation_placement == {("a", 2, "b", 1): "intra-socket"}
    assert PerformanceProfile.build(runs, percentile=0).solo_time("a", 2) == 10.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: columns"),
        (HEADER + "solo,a,1,1,intra-socket,,,\n", "line 2: 8 columns, 9 needed"),
        (HEADER + "duo,a,1,1,intra-socket,,,,1\n", "line 2: kind = 'duo'"),
        (HEADER + "\nsolo,a,1,1,nowhere,,,,1\n", "line 3: placement = 'nowhere'"),
        (HEADER + "solo,a,1,1,,,,,1\n", "line 2: placement = None"),
        (HEADER + "solo,a,1,0,intra-socket,,,,1\n", "line 2: gpus = '0'"),
        (HEADER + "solo,a,1,1,intra-socket,,,,nan\n", "line 2: seconds = 'nan'"),
        (HEADER + "solo,a,1,1,intra-socket,,,,-1\n", "line 2: seconds = '-1'"),
        (HEADER + "solo,a,1,1,intra-socket,b,,,1\n", "line 2: a solo run must have no value"),
        (HEADER + "solo,a,1,1,intra-socket,,,,1e-300\n", "line 2: seconds = 1e-300 is neither 0 nor in"),
        (HEADER + "solo,,,1,intra-socket,,,,1\n", "line 2: name = ''"),
        (HEADER + "collocation,a,1,1,,b,1,,1\n", "line 2: with_gpus = ''"),
        (HEADER + "collocation,a,1,1,,b,1,1,{}\n", "line 2: seconds = '{}'"),
        (HEADER + "solo,a,1,1,intra-socket,,,,1\n" * 2, "line 3: already measured in line 2"),
    ],
    ids=lambda text: text[-24:].strip(),
)
def test_bad_csv_is_refused_by_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^line") as caught:
        PerformanceProfile.from_csv(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", r"the text = \[\] is not a dict"),
        ("{}", "format and version"),
        ('{"format":"topoplace.profile","version":1}', "runs = None"),
        ('{"format":"topoplace.profile","version":1,"runs":[{"name":"a"}]}', r"runs\[0\]: missing"),
        ('{"format":"topoplace.profile","version":1,"runs":[3]}', r"runs\[0\] = 3"),
    ],
)
def test_bad_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PerformanceProfile.from_json(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "solo = "),
        (({("a", 1): 1.0},), r"solo\[\('a', 1\)\]"),
        (({("a", 1, "far"): 1.0},), "placement = 'far'"),
        (({("a", True, "intra-socket"): 1.0},), "num_gpus = True"),
        (({("a", 1, "intra-socket"): math.inf},), "seconds = inf"),
        (({("a", 1, "intra-socket"): 1e-300},), "seconds = 1e-300 is neither 0 nor in"),
        (({("a", 1, "intra-socket"): 2e15},), "is neither 0 nor in"),
        (({}, {("a", 1, "b"): 1.0}), "colocation"),
        (({}, {("a", 1, "", 1): 1.0}), "other = ''"),
        (({}, {}, {("a", 1, "b", 1): "intra-socket"}), "the pair must also be in colocation"),
        (({}, {("a", 1, "b", 1): 1.0}, {("a", 1, "b", 1): "far"}), "placement = 'far'"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else None,
)
def test_bad_arguments_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PerformanceProfile(*arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="other_gpus"):
        Measurement("a", 1, None, 1.0, "b")
    with pytest.raises(ValueError, match="percentile"):
        PerformanceProfile.build([], percentile=101)
    with pytest.raises(ValueError, match="placement = 'far'"):
        PerformanceProfile({}).solo_time("a", 1, "far")


@pytest.mark.parametrize(("version", "pairs"), [("", 175), ("2", 106), ("_full", 145)])
def test_the_published_profiles_load_as_they_are(shared: Path, version: str, pairs: int) -> None:
    path = shared / "data" / "traces" / f"sc17-prof_from_experiments{version}.csv.gz"
    profile = PerformanceProfile.from_csv(gzip.decompress(path.read_bytes()).decode())
    assert len(profile.solo) == 32
    assert len(profile.colocation) == pairs
    assert len(profile.kinds) == 24
    assert profile.solo_time("bvlc_alexnet/1", 2, "inter-socket") == 159.115
    assert profile.solo_time("bvlc_alexnet/1", 3, "inter-socket") == 170.36
    if not version:
        pair = profile.slowdown("bvlc_alexnet/1", 2, "bvlc_alexnet/1", 2)
        assert pair == pytest.approx(1.055, abs=5e-4)


# ---- the command -------------------------------------------------------------------------------------------------


def topoplace(*arguments: str | Path, stdin: bytes = b"") -> tuple[int, str, str]:
    done = run("profile", *arguments, stdin=stdin)
    return done.returncode, done.stdout, done.stderr


RUNS = HEADER + "".join(f"solo,a,1,2,intra-socket,,,,{seconds}\n" for seconds in (10, 11, 12, 13, 14))
RUNS += "solo,a,1,2,inter-socket,,,,20\ncollocation,a,1,2,inter-socket,b,1,2,25\n"


@whole
def test_profile_build_and_show(tmp_path: Path) -> None:
    runs = tmp_path / "runs.csv"
    runs.write_text(RUNS)
    for name in ("profile.csv", "profile.json"):
        code, out, err = topoplace("build", runs, "-o", tmp_path / name)
        assert (code, err) == (0, "")
        assert "2 times alone, 1 next to" in out
        code, out, err = topoplace("show", tmp_path / name)
        assert (code, err) == (0, "")
        assert re.search(r"a/1 +2 +13.8 +20 +- +1.45\n", out)
        assert re.search(r"% longer on 2 GPUs, next to a job on 2\nname +b/1\na/1 +25\n", out)
    least = tmp_path / "least.csv"
    assert topoplace("build", "-", "-o", least, "--percentile", "0", stdin=RUNS.encode())[0] == 0
    rows = json.loads(topoplace("show", "-", "--json", stdin=gzip.compress(least.read_bytes()))[1])
    assert [(row["pack_s"], row["spread_s"], row["spread_over_pack"]) for row in rows["solo"]] == [
        (10, 20, 2)
    ]
    assert [(row["name"], row["other"], row["slowdown"]) for row in rows["pairs"]] == [("a/1", "b/1", 1.25)]


@whole
@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (("show", "-"), b"kind\n", "standard input: line 1: columns = ['kind']"),
        (("show", "-"), b"{}", "standard input: format and version"),
        (("show", "-"), gzip.compress(RUNS.encode())[:-9], "standard input: gzip, cut off"),
        (("show", "-"), b"\x1f\x8b" + b"x" * 30, "standard input: damaged gzip"),
        (("show", "-"), RUNS.encode(), "line 3: already measured in line 2"),
        (("build", "-", "-o", "p.txt"), RUNS.encode(), "-o p.txt: neither .csv nor .json"),
        (
            ("build", "-", "-o", "p.csv", "--percentile", "101"),
            RUNS.encode(),
            "topoplace: --percentile = 101",
        ),
        (("build", "-", "-o", "p.csv"), HEADER.encode() + b"solo,a,1,x,,,,,1\n", "line 2: gpus = 'x'"),
        (("build", "-", "-o", "p.csv"), HEADER.encode(), "standard input: no measurement"),
        (
            ("build", "-", "-o", "p.csv"),
            HEADER.encode() + b"solo,a,1,1,intra-socket,,,,0\n",
            "standard input: no measurement",
        ),
    ],
    ids=["columns", "json", "cut", "damaged", "twice", "suffix", "percentile", "gpus", "none", "unmeasured"],
)
def test_wrong_input_is_one_line(arguments: tuple[str, ...], stdin: bytes, message: str) -> None:
    assert_command_refuses("profile", *arguments, message=message, stdin=stdin)

"""Parallel jobs: the ranks of each group as Megatron-LM numbers them, and the traffic of published models."""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from thoroughness import thorough
from topoplace.jobs.models import MODELS

JobGraph, Traffic = tp.JobGraph, tp.Traffic
Groups = dict[str, list[tuple[int, ...]]]
DEGREES = ("tensor", "context", "data", "pipeline")


def groups_by_loops(degrees: dict[str, int], expert: int, order: tuple[str, ...]) -> Groups:
    """The groups of each dimension: the ranks that differ in its coordinate only; the first in `order` counts fastest.

    The rank is a number whose digits are the coordinates, as in Megatron-LM's orders such as "tp-cp-ep-dp-pp", in which
    the two digits ep and dp make the coordinate of data.
    """
    found: dict[str, dict[tuple[Any, ...], list[int]]] = defaultdict(lambda: defaultdict(list))
    slowest_first = [range(degrees[name]) for name in reversed(order)]
    for rank, digits in enumerate(itertools.product(*slowest_first)):
        at = dict(zip(reversed(order), digits, strict=True))
        rest = {name: tuple(at[other] for other in DEGREES if other != name) for name in DEGREES}
        for name in DEGREES:
            found[name][rest[name]].append(rank)
        found["expert"][*rest["data"], at["data"] // expert].append(rank)
        found["expert_data"][*rest["data"], at["data"] % expert].append(rank)
    return {name: sorted(map(tuple, groups.values())) for name, groups in found.items()}


def random_degrees(rng: random.Random) -> tuple[dict[str, int], int]:
    degrees = {name: rng.choice([1, 1, 2, 3, 4, 6, 8]) for name in DEGREES}
    return degrees, rng.choice([e for e in range(1, degrees["data"] + 1) if degrees["data"] % e == 0])


def test_ranks_are_those_of_megatron_for_random_degrees() -> None:
    rng = random.Random(18)
    traffic = Traffic(tensor=1, context=1, data=1, pipeline=1, expert=1, expert_data=1)
    for i in range(thorough(500, 100)):
        degrees, expert = random_degrees(rng)
        order = DEGREES if i % 2 else tuple(rng.sample(DEGREES, 4))
        say: dict[str, Any] = {} if i % 2 else {"order": "-".join(order)}
        job = JobGraph.parallel(**degrees, expert=expert, traffic=traffic, **say)
        assert job.num_tasks == math.prod(degrees.values())
        expected = groups_by_loops(degrees, expert, order)
        if expert == 1:
            del expected["expert_data"]  # the same groups as of data
        several = {name: groups for name, groups in expected.items() if len(groups[0]) > 1}
        assert {name: list(groups) for name, groups in job.dimensions.items()} == several
        plain = JobGraph.parallel(**degrees, expert=expert, **say)
        several.pop("expert_data", None)
        assert {name: list(groups) for name, groups in plain.dimensions.items()} == several


def test_the_default_order_is_as_documented() -> None:
    job = JobGraph.parallel(tensor=2, context=2, data=4, pipeline=2, expert=2)
    assert job.num_tasks == 32
    assert job.name == "parallel"
    first = {name: groups[0] for name, groups in job.dimensions.items()}
    assert first == {
        "tensor": (0, 1),
        "context": (0, 2),
        "expert": (0, 4),
        "data": (0, 4, 8, 12),
        "pipeline": (0, 16),
    }
    assert {one.gigabytes for one in job.collectives} == {1.0}
    kinds = {one.dimension: one.kind for one in job.collectives}
    assert (kinds["tensor"], kinds["expert"], kinds["pipeline"]) == ("all_reduce", "all_to_all", "send")
    assert JobGraph.parallel().collectives == ()
    everyone = tp.Collective("all_reduce", (0, 1, 2, 3), 1.0, "data")
    assert JobGraph.parallel(data=4).collectives == (everyone,)


def test_large_jobs_have_their_edges() -> None:
    traffic = Traffic.of(
        "deepseek-v3", micro_batches=16, sequence_parallel=True, zero_stage=1, virtual_stages=2
    )
    job = JobGraph.parallel(tensor=8, pipeline=16, data=32, expert=8, traffic=traffic)
    assert job.num_tasks == 4096
    assert {one.kind for one in job.collectives} == {"all_gather", "reduce_scatter", "all_to_all", "send"}
    carried = sum(weight for *_, weight in job.edges)
    assert carried == pytest.approx(sum(one.gigabytes * (len(one.tasks) - 1) for one in job.collectives))


# ---- traffic -------------------------------------------------------------------------------------------------

# Narayanan et al., SC'21 (arXiv 2104.04473), table 1: billions of parameters, tensor and pipeline degree, GPUs,
# batch size.
TABLE_1 = {
    "megatron-1.7b": (1.7, 1, 1, 32, 512),
    "megatron-3.6b": (3.6, 2, 1, 64, 512),
    "megatron-7.5b": (7.5, 4, 1, 128, 512),
    "megatron-18.4b": (18.4, 8, 1, 256, 1024),
    "megatron-39.1b": (39.1, 8, 2, 512, 1536),
    "megatron-76.1b": (76.1, 8, 4, 1024, 1792),
    "megatron-145.6b": (145.6, 8, 8, 1536, 2304),
    "megatron-310.1b": (310.1, 8, 16, 1920, 2160),
    "megatron-529.6b": (529.6, 8, 35, 2520, 2520),
    "megatron-1008b": (1008.0, 8, 64, 3072, 3072),
}


@pytest.mark.parametrize("name", TABLE_1)
def test_rows_of_megatrons_table_1(name: str) -> None:
    """Eq. 2 gives the parameters, section 3.2 the bytes: p2p b s h, and 8 b s h (t - 1) / t a layer and device."""
    billions, t, p, gpus, batch = TABLE_1[name]
    shape = MODELS[name]
    h, layers, s = shape.hidden, shape.layers, 2048
    parameters = 12 * layers * h**2 * (1 + 13 / (12 * h) + (51_200 + s) / (12 * layers * h))
    assert shape.parameters == pytest.approx(parameters, rel=1e-12)
    assert round(shape.parameters / 1e9, 1) == pytest.approx(billions, rel=0.01, abs=0.051)
    d = gpus // (t * p)
    m = batch // d
    volumes = Traffic.of(name, micro_batches=m).per_group(tensor=t, pipeline=p, data=d)
    assert volumes["data"]["all_reduce"] == pytest.approx(2 * billions / (t * p), rel=0.03)
    if t > 1:
        by_device = volumes["tensor"]["all_reduce"] * 2 * (t - 1) / t
        assert by_device == pytest.approx(m * layers / p * 8 * s * h * (t - 1) / t * 2 / 1e9)
    if p > 1:
        assert volumes["pipeline"]["send"] == pytest.approx(2 * m * s * h * 2 / 1e9)
    assert set(volumes) == {name for name, n in {"tensor": t, "pipeline": p, "data": d}.items() if n > 1}


# Parameters in billions as stated: arXiv 2005.14165, table 2.1; 2302.13971, table 2, whose shapes Llama 2 keeps for its
# two smaller sizes; the published weights of Llama 2 70B, whose paper rounds; 2407.21783, table 3; 2401.04088,
# section 1; 2412.19437, abstract.
STATED = {
    "gpt3-175b": 175.0,
    "llama2-7b": 6.7,
    "llama2-13b": 13.0,
    "llama2-70b": 69.0,
    "llama3-8b": 8.0,
    "llama3-70b": 70.0,
    "llama3-405b": 405.0,
    "mixtral-8x7b": 47.0,
    "deepseek-v3": 671.0,
}


@pytest.mark.parametrize("name", STATED)
def test_shapes_have_the_parameters_that_their_papers_state(name: str) -> None:
    assert MODELS[name].parameters / 1e9 == pytest.approx(STATED[name], rel=0.01)


def test_every_model_is_checked_and_cited() -> None:
    assert set(MODELS) == {*TABLE_1, *STATED}
    assert all("arXiv" in shape.source for shape in MODELS.values())


@pytest.mark.parametrize(("name", "billions"), [("mixtral-8x7b", 13), ("deepseek-v3", 37)])
def test_active_parameters_are_as_stated(name: str, billions: int) -> None:
    """Those that multiply a token's activations: k experts of each layer, and no embedding, which is looked up."""
    shape = MODELS[name]
    unused = shape.expert_parameters * (shape.experts - shape.top_k) // shape.experts
    active = shape.parameters - unused - shape.vocabulary * shape.hidden
    assert round(active / 1e9) == billions
    multiplied = shape.multiplied_in_layers + shape.vocabulary * shape.hidden
    assert multiplied == pytest.approx(
        active, rel=1e-4
    )  # normalisations scale each number, and multiply none


@pytest.mark.parametrize("name", TABLE_1)
def test_operations_are_those_of_megatrons_eq_3(name: str) -> None:
    """F = 96 B s l h^2 (1 + s / 6h + V / 16lh) for the whole job, with activations that are computed again."""
    _, t, p, gpus, batch = TABLE_1[name]
    h, layers, s = MODELS[name].hidden, MODELS[name].layers, 2048
    d = gpus // (t * p)
    traffic = Traffic.of(name, micro_batches=batch // d, recompute=True)
    job = JobGraph.parallel(tensor=t, pipeline=p, data=d, traffic=traffic)
    whole = 96 * (batch // d) * d * s * layers * h**2 * (1 + s / (6 * h) + 51_200 / (16 * layers * h))
    assert job.tflop is not None
    assert job.tflop * gpus == pytest.approx(whole / 1e12, rel=1e-12)


def test_operations_of_gpt3_take_the_time_that_was_published() -> None:
    """arXiv 2104.04473, section 5.1: 300e9 tokens on 1024 A100 at 140 TFLOP/s each, a batch of 1536: 34 days."""
    job = JobGraph.parallel(
        tensor=8, pipeline=16, data=8, traffic=Traffic.of("gpt3-175b", micro_batches=192, recompute=True)
    )
    assert job.tflop is not None
    steps = 300e9 / (1536 * 2048)
    assert steps * job.tflop / 140 / 86_400 == pytest.approx(34, rel=0.04)


def test_operations_of_llama3_405b_are_as_published() -> None:
    """arXiv 2407.21783, section 1: 3.8e25 operations for 15.6e12 tokens, which leaves attention out: 8 % here."""
    traffic = Traffic.of("llama3-405b")
    assert traffic.tflop is not None
    in_all = traffic.tflop * 1e12 / 8192 * 15.6e12
    assert 3.8e25 < in_all < 1.1 * 3.8e25


@given(*[st.integers(1, 4)] * 4, st.sampled_from([1, 2]), st.integers(1, 5))
def test_tensor_pipeline_and_context_ranks_share_what_a_data_rank_computes(
    tensor: int, pipeline: int, context: int, data: int, expert: int, micro_batches: int
) -> None:
    one = Traffic.of("mixtral-8x7b").tflop
    traffic = replace(Traffic.of("mixtral-8x7b", micro_batches=micro_batches), heads=None)
    job = JobGraph.parallel(
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        data=data * expert,
        expert=expert,
        traffic=traffic,
    )
    assert one is not None
    assert job.tflop is not None
    assert job.tflop * job.num_tasks == pytest.approx(one * micro_batches * data * expert)
    assert JobGraph.from_json(job.to_json()) == job


def test_operations_may_be_stated_and_are_unknown_otherwise() -> None:
    stated = JobGraph.parallel(tensor=4, traffic=Traffic(tensor=40, tflop=500))
    unknown = JobGraph.parallel(tensor=4, traffic=Traffic(tensor=40))
    assert stated.tflop == 125.0
    assert unknown.tflop is None
    assert "tflop" not in unknown.to_json()
    assert stated.with_(tflop=None) == unknown != stated


def test_experts_of_deepseek_v3_get_what_its_report_says() -> None:
    """arXiv 2412.19437: 8 of 256 experts for each token of 7168 numbers in 58 of 61 layers; sent in one byte (FP8) and
    combined in two (BF16), section 3.3.3."""
    traffic = Traffic.of("deepseek-v3", dispatch_bytes=1, micro_batches=3)
    volume = traffic.per_group(data=64, expert=64)["expert"]["all_to_all"]
    assert volume == pytest.approx(3 * 4096 * 58 * 2 * 8 * 7168 * (1 + 2) / 1e9)
    by_stage = traffic.per_group(data=64, expert=64, pipeline=16)["expert"]["all_to_all"]
    assert by_stage == pytest.approx(volume / 16)


@pytest.mark.parametrize(("stage", "moved"), [(0, 2), (1, 2), (2, 2), (3, 3)])
def test_zero_moves_twice_or_three_times_the_parameters(stage: int, moved: int) -> None:
    """arXiv 1910.02054, section 7: numbers that a device sends, nearly, for each parameter; here in two bytes each."""
    shape, n = MODELS["gpt3-175b"], 1024
    volumes = Traffic.of("gpt3-175b", zero_stage=stage).per_group(data=n)["data"]
    sent = sum(
        gigabytes * (2 if kind == "all_reduce" else 1) * (n - 1) / n for kind, gigabytes in volumes.items()
    )
    assert sent == pytest.approx(moved * shape.parameters * 2 / 1e9, rel=1e-2)


def test_sequence_parallelism_moves_the_same_bytes_between_tensor_ranks_and_less_between_stages() -> None:
    """arXiv 2205.05198, section 4.2.2: an all-reduce is a reduce-scatter and an all-gather."""
    plain = Traffic.of("megatron-145.6b", micro_batches=5).per_group(tensor=8, pipeline=8)
    divided = Traffic.of("megatron-145.6b", micro_batches=5, sequence_parallel=True).per_group(
        tensor=8, pipeline=8
    )
    assert divided["tensor"] == dict.fromkeys(("all_gather", "reduce_scatter"), plain["tensor"]["all_reduce"])
    assert divided["pipeline"]["send"] == pytest.approx(plain["pipeline"]["send"] / 8)


def test_virtual_stages_cross_more_often_and_go_round() -> None:
    """arXiv 2104.04473, section 2.2.2: v times the communication; a micro-batch crosses v p - 1 boundaries."""
    once = Traffic(pipeline=6.0)
    job = JobGraph.parallel(pipeline=4, traffic=replace(once, virtual_stages=3))
    assert job.edges == ((0, 1, 18.0), (0, 3, 12.0), (1, 2, 18.0), (2, 3, 18.0))
    assert sum(weight for *_, weight in job.edges) == 6.0 * (3 * 4 - 1)
    assert job.dimensions == {"pipeline": ((0, 1, 2, 3),)}
    assert JobGraph.parallel(pipeline=2, traffic=replace(once, virtual_stages=3)).edges == ((0, 1, 30.0),)


@given(st.integers(1, 8), st.integers(1, 8), st.sampled_from(["all_reduce", "all_gather", "reduce_scatter"]))
def test_gradients_of_context_ranks_move_what_one_reduction_moves(context: int, data: int, kind: str) -> None:
    traffic = Traffic(data={kind: 10.0}, context={"all_to_all": 1.0})
    volumes = traffic.per_group(context=context, data=data)
    sent = sum(
        gigabytes * (2 if kind == "all_reduce" else 1) * (n - 1) / n
        for name, n in (("context", context), ("data", data))
        for kind, gigabytes in volumes.get(name, {}).items()
        if kind != "all_to_all"
    )
    n = context * data
    assert sent == pytest.approx(10.0 * (2 if kind == "all_reduce" else 1) * (n - 1) / n)


def test_gradients_of_experts_are_reduced_among_ranks_with_the_same_experts() -> None:
    shape = MODELS["mixtral-8x7b"]
    dense, all_experts = (
        2 * n / 1e9 for n in (shape.parameters - shape.expert_parameters, shape.expert_parameters)
    )
    traffic = Traffic.of("mixtral-8x7b")
    whole = traffic.per_group(data=16)
    assert whole == {"data": {"all_reduce": pytest.approx(dense + all_experts)}}
    parts = traffic.per_group(tensor=2, data=16, expert=8)
    assert parts["data"]["all_reduce"] == pytest.approx(dense / 2)
    assert parts["expert_data"]["all_reduce"] == pytest.approx(all_experts / (2 * 8))
    assert "expert_data" not in traffic.per_group(data=8, expert=8)


def test_ring_attention_passes_keys_and_values_round() -> None:
    """Each of 4 tasks sends the keys and values of its part 3 times in each pass, and their gradients once round."""
    traffic = Traffic.of("llama3-70b", sequence=1000, micro_batches=2)
    part = 2 * 1000 / 4 * 80 * 2 * (8 * 128) * 2 / 1e9
    volumes = traffic.per_group(context=4)["context"]
    gradients = 2 * MODELS["llama3-70b"].parameters / 1e9
    sent = {kind: (gigabytes - gradients) * 3 / 4 for kind, gigabytes in volumes.items()}
    assert sent == pytest.approx({"all_gather": 2 * 3 * part, "reduce_scatter": 3 * part})


def test_a_model_may_be_said_by_its_sizes() -> None:
    for name in ("megatron-18.4b", "llama3-70b"):
        shape = MODELS[name]
        said = Traffic.transformer(
            layers=shape.layers,
            hidden=shape.hidden,
            sequence=shape.sequence,
            vocabulary=shape.vocabulary,
            heads=shape.heads,
            key_value_heads=shape.key_value_heads,
            feed_forward=shape.feed_forward,
            gated=shape.gated,
            micro_batches=4,
            recompute=True,
        )
        assert said == Traffic.of(name, micro_batches=4, recompute=True)
    plain = Traffic.of("llama3-70b", micro_batches=4).per_group(tensor=2)["tensor"]["all_reduce"]
    assert said.per_group(tensor=2)["tensor"]["all_reduce"] == pytest.approx(1.5 * plain)


WHOLE = {"layers": 2, "hidden": 8, "sequence": 4}
DENSE = Traffic.of("llama3-8b")
BAD: list[tuple[Any, str]] = [
    (lambda: JobGraph.parallel(tensor=0), r"tensor = 0 is not in 1\.\."),
    (lambda: JobGraph.parallel(pipeline=2.0), "pipeline = 2.0 is not an integer"),  # type: ignore[arg-type]
    (lambda: JobGraph.parallel(data=True), "data = True is not an integer"),
    (lambda: JobGraph.parallel(data=6, expert=4), "expert = 4 does not divide data = 6"),
    (
        lambda: JobGraph.parallel(tensor=2048, data=2048),
        "tensor 2048 x context 1 x data 2048 x pipeline 1 = 4194304",
    ),
    (
        lambda: JobGraph.parallel(data=2, order="tensor-data-data-pipeline"),
        "order = 'tensor-data-data-pipeline' names data twice",
    ),
    (
        lambda: JobGraph.parallel(data=2, order="tensor-data-pipeline"),
        "order = 'tensor-data-pipeline' lacks context",
    ),
    (
        lambda: JobGraph.parallel(data=2, order="tp-cp-dp-pp"),
        "order = 'tp-cp-dp-pp': dimension 0 = 'tp' is not one of tensor,",
    ),
    (lambda: JobGraph.parallel(data=2, order=3), "order = 3 is not a non-empty string"),  # type: ignore[arg-type]
    (lambda: JobGraph.parallel(data=2, traffic=5), "traffic = 5 is not a Traffic"),  # type: ignore[arg-type]
    (
        lambda: JobGraph.parallel(data=8, expert=8, traffic=DENSE),
        "expert = 8, but traffic has no bytes for expert",
    ),
    (
        lambda: JobGraph.parallel(tensor=2, traffic=Traffic(data=1)),
        "tensor = 2, but traffic has no bytes for tensor",
    ),
    (lambda: DENSE.per_group(data=6, expert=1, tensor=-2), "tensor = -2 is not in"),
    (
        lambda: Traffic.of("llama3-8b").per_group(tensor=24),
        "tensor = 24 does not divide the 32 attention heads",
    ),
    (
        lambda: Traffic.of("mixtral-8x7b").per_group(data=32, expert=16),
        "expert = 16 does not divide the 8 experts of a layer",
    ),
    (lambda: Traffic.of("llama3-8b").per_group(pipeline=33), "pipeline = 33 is more than the 32 layers"),
    (
        lambda: Traffic.of("llama3-8b", virtual_stages=5).per_group(pipeline=8),
        "pipeline = 8 of 5 parts is more than the 32 layers",
    ),
    (lambda: Traffic(heads=0), "heads = 0 is not in"),
    (lambda: Traffic(tflop=0), "tflop = 0 is not above 0"),
    (lambda: Traffic(tflop=5e15), "tflop = 5000000000000000.0 is more than "),
    (lambda: Traffic(tflop="5"), "tflop = '5' is not a number"),  # type: ignore[arg-type]
    (lambda: Traffic(tensor=-1), "tensor = -1 is not above 0"),
    (lambda: Traffic(tensor="1"), "tensor = '1' is not a number"),  # type: ignore[arg-type]
    (lambda: Traffic(data=math.inf), "data = inf is not a finite number"),
    (lambda: Traffic(data={"all_gather": math.nan}), r"data\['all_gather'\] = nan"),
    (lambda: Traffic(data={"send": 1}), "kind of data = 'send' is not one of all_reduce"),
    (lambda: Traffic(pipeline={"all_reduce": 1}), "kind of pipeline = 'all_reduce' is not one of send"),
    (lambda: Traffic(tensor=(("send", 1), ("send", 2))), "tensor has the kind 'send' twice"),
    (lambda: Traffic(tensor=(1, 2)), "an item of tensor = 1 is not a sequence"),  # type: ignore[arg-type]
    (lambda: Traffic(tensor=((1, 2, 3),)), r"tensor has \(1, 2, 3\), which is not"),  # type: ignore[arg-type]
    (lambda: Traffic(virtual_stages=0), "virtual_stages = 0 is not in"),
    (lambda: Traffic(sequence_parallel=1), "sequence_parallel = 1 is not True or False"),  # type: ignore[arg-type]
    (lambda: Traffic.of("llama3-7b"), "model = 'llama3-7b' is not one of .*did you mean .*llama3-8b"),
    (lambda: Traffic.of("llama3-8b", sequence=0), "sequence = 0 is not in"),
    (lambda: Traffic.of("llama3-8b", micro_batch=2), "micro_batch is not one of .*did you mean micro_batch"),  # type: ignore[call-arg]
    (lambda: Traffic.of("llama3-8b", zero_stage=4), r"zero_stage = 4 is not in 0\.\.3"),
    (lambda: Traffic.of("llama3-8b", gradient_bytes=0), "gradient_bytes = 0 is not above 0"),
    (lambda: Traffic.transformer(**{**WHOLE, "layers": 0}), "layers = 0 is not in"),
    (lambda: Traffic.transformer(**WHOLE, heads=3), "heads = 3 does not divide hidden = 8"),
    (
        lambda: Traffic.transformer(**WHOLE, heads=2, key_value_heads=4),
        r"key_value_heads = 4 is not in 1\.\.2",
    ),
    (lambda: Traffic.transformer(**WHOLE, experts=4), r"top_k = 0 is not in 1\.\.4"),
    (lambda: Traffic.transformer(**WHOLE, top_k=1), r"top_k = 1 is not in 0\.\.0"),
]


@pytest.mark.parametrize(("build", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_degrees_orders_and_traffic_are_refused_by_name(build: Any, message: str) -> None:
    with pytest.raises(tp.JobGraphError, match=message):
        build()


@given(
    st.dictionaries(
        st.sampled_from(["tensor", "data", "expert", "order", "traffic"]),
        st.integers() | st.text() | st.floats(),
    )
)
def test_odd_arguments_are_refused_or_give_a_job(said: dict[str, Any]) -> None:
    if any(isinstance(value, int) and value > 64 for value in said.values()):
        return
    try:
        job = JobGraph.parallel(**said)
    except tp.JobGraphError:
        return
    assert JobGraph.from_json(job.to_json()) == job

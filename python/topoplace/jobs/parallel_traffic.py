"""Traffic: the data and the operations of a training step, along each dimension of parallelism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypedDict, Unpack, cast

from topoplace import _checks
from topoplace._similar_names import not_one_of
from topoplace.errors import JobGraphError
from topoplace.jobs.collectives import KINDS, MAX_GIGABYTES
from topoplace.jobs.models import MODELS, ModelShape
from topoplace.jobs.requirements import tflop

Volume = float | Mapping[str, float] | tuple[tuple[str, float], ...]
"""GB of the usual kind of collective, or (kind, GB) for each kind."""
Volumes = dict[str, dict[str, float]]
"""The GB of each kind of collective, by dimension."""

DEFAULT_KINDS: Final = {
    "tensor": "all_reduce",
    "context": "all_gather",
    "expert": "all_to_all",
    "data": "all_reduce",
    "pipeline": "send",
}
"""The usual kind of collective of each dimension along which a job is divided."""
VOLUMES: Final = (*DEFAULT_KINDS, "expert_data")
"""The fields of `Traffic` with GB by kind of collective."""
_REDUCTIONS: Final = ("all_reduce", "all_gather", "reduce_scatter")
_KINDS: Final = {"data": _REDUCTIONS, "expert_data": _REDUCTIONS, "pipeline": ("send",)}
"""The kinds that a dimension may have, if not all."""
_BYTES_PER_GB: Final = 1e9
_OPERATIONS_PER_TFLOP: Final = 1e12
_MAX_NUMBER: Final = 1 << 24
_MAX_BYTES: Final = 16.0
"""Maximum bytes of a number."""


class Training(TypedDict, total=False):
    """How a model is trained: options of `Traffic.transformer` and `Traffic.of`."""

    micro_batches: int
    """Micro-batches of each data rank in a step; 1 if not given."""
    micro_batch_size: int
    """Sequences of a micro-batch; 1 if not given."""
    virtual_stages: int
    """Parts of the model on each pipeline stage, if the schedule interleaves them; 1 if not given."""
    sequence_parallel: bool
    """True if the tasks that share each layer divide the sequence between layers; False if not given."""
    recompute: bool
    """True if the backward pass repeats the whole forward pass to save memory; False if not given."""
    zero_stage: int
    """What the data ranks divide: 0 nothing, 1 the optimizer's state, 2 also gradients, 3 also parameters; 0 if not
    given."""
    activation_bytes: float
    """Bytes of a number in activations; 2 if not given."""
    dispatch_bytes: float
    """Bytes of a number in activations that go to experts; `activation_bytes` if not given."""
    parameter_bytes: float
    """Bytes of a parameter; 2 if not given."""
    gradient_bytes: float
    """Bytes of a number in reduced gradients; 2 if not given. Megatron-LM reduces in 4 bytes if it trains in bfloat16.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What a model moves in a training step along each dimension of parallelism, before it is divided further.

    Each field has the GB in the collectives of one group if the model is divided along this dimension alone:
    `per_group` and `JobGraph.parallel` divide them by the degrees of the other dimensions. A number counts for the
    usual kind of collective. A mapping such as `{"all_gather": 3.0, "reduce_scatter": 1.5}` states the GB of each kind,
    counted as in `Collective`. Without `tflop`, the compute time of a step is unknown.

    Raises:
        JobGraphError: Names the invalid argument, kind and value.
    """

    tensor: Volume = ()
    """Activations, among the tasks that share each layer; usually all_reduce."""
    context: Volume = ()
    """Keys and values, among the tasks that share each sequence; usually all_gather, which moves as much as a ring."""
    expert: Volume = ()
    """Tokens that each task sends to experts and back; usually all_to_all."""
    data: Volume = ()
    """Gradients and parameters that all data ranks have; usually all_reduce."""
    expert_data: Volume = ()
    """Gradients and parameters of experts, among the data ranks that have the same experts; usually all_reduce."""
    pipeline: Volume = ()
    """Activations and their gradients between two successive stages, both ways together; send."""
    sequence_parallel: bool = False
    """True if the tasks that share each layer divide the activations between layers. Each then sends only its part to
    the next stage and to experts; otherwise each sends all activations.
    """
    virtual_stages: int = 1
    """Parts of the model on each pipeline stage, if the schedule interleaves them. Each micro-batch crosses from stage
    to stage this number of times, and from the last stage back to the first one time less.
    """
    layers: int | None = None
    """Layers of the model; each part has at least one; None if unknown."""
    heads: int | None = None
    """Attention heads, which tasks that share a layer divide equally; None if unknown."""
    experts: int | None = None
    """Experts of a layer, which tasks divide equally; None if unknown."""
    tflop: float | None = None
    """10¹² floating-point operations of a data rank in a step; None if unknown. Its tensor, pipeline and context ranks
    divide them equally.
    """

    def __post_init__(self) -> None:
        keep = object.__setattr__  # only this method may write: it brings the fields to canonical form
        for dimension in VOLUMES:
            keep(self, dimension, _checked_volume(getattr(self, dimension), dimension))
        _checks.flag(self.sequence_parallel, "sequence_parallel", JobGraphError)
        keep(self, "virtual_stages", _number(self.virtual_stages, "virtual_stages"))
        for size in ("layers", "heads", "experts"):
            if (stated := getattr(self, size)) is not None:
                keep(self, size, _number(stated, size))
        if self.tflop is not None:
            keep(self, "tflop", tflop(self.tflop, "tflop"))

    @classmethod
    def transformer(
        cls,
        *,
        layers: int,
        hidden: int,
        sequence: int,
        vocabulary: int = 0,
        heads: int = 1,
        key_value_heads: int | None = None,
        feed_forward: int | None = None,
        gated: bool = False,
        experts: int = 0,
        top_k: int = 0,
        **training: Unpack[Training],
    ) -> Self:
        """Compute what a transformer moves and computes in a training step, by the formulas in docs/concepts.md.

        The sources are Megatron-LM (Narayanan et al., SC'21, arXiv 2104.04473; Korthikanti et al. 2022, arXiv
        2205.05198), ZeRO (Rajbhandari et al., SC'20, arXiv 1910.02054), GShard (Lepikhin et al. 2020, arXiv 2006.16668)
        and ring attention (Liu et al. 2023, arXiv 2310.01889); for operations, Megatron-LM and PaLM (Chowdhery et al.
        2022, arXiv 2204.02311, appendix B).

        Args:
            layers: Number of layers.
            hidden: Size of the activations of a token.
            sequence: Tokens of a sequence.
            vocabulary: Number of tokens in the vocabulary.
            heads: Attention heads; with 1, the number of tasks that share a layer is not checked.
            key_value_heads: Heads of keys and values; `heads` if None.
            feed_forward: Inner size of feed-forward layers, and of each expert; 4 x `hidden` if None.
            gated: True for Llama's kind: feed-forward layers of three matrices, not two, no biases, rotary positions
                and an output layer of its own.
            experts: Experts in each layer; 0 for a dense model.
            top_k: Experts that each token uses.
            training: How the model is trained: the options of `Training`.

        Raises:
            JobGraphError: Names a wrong argument.
        """
        hidden, heads = _number(hidden, "hidden"), _number(heads, "heads")
        if hidden % heads:
            raise JobGraphError(f"heads = {heads} does not divide hidden = {hidden}")
        shape = ModelShape(
            layers=_number(layers, "layers"),
            hidden=hidden,
            heads=heads,
            key_value_heads=heads
            if key_value_heads is None
            else _number(key_value_heads, "key_value_heads", high=heads),
            head_size=hidden // heads,
            feed_forward=4 * hidden if feed_forward is None else _number(feed_forward, "feed_forward"),
            vocabulary=_number(vocabulary, "vocabulary", low=0),
            sequence=_number(sequence, "sequence"),
            gated=_checks.flag(gated, "gated", JobGraphError),
            experts=_number(experts, "experts", low=0),
            top_k=_number(top_k, "top_k", low=int(experts > 0), high=experts),
        )
        return cls._computed(shape, training)

    @classmethod
    def of(cls, model: str, *, sequence: int | None = None, **training: Unpack[Training]) -> Self:
        """Compute what a published model moves and computes in a training step; see `transformer`.

        Args:
            model: Its name, such as "llama3-70b"; an unknown one is refused with a list of all.
            sequence: Tokens of a sequence; None for as many as the paper states.
            training: How the model is trained: the options of `Training`.
        """
        shape = MODELS[_checks.one_of(model, "model", MODELS, JobGraphError)]
        tokens = shape.sequence if sequence is None else _number(sequence, "sequence")
        return cls._computed(shape, training, tokens)

    @classmethod
    def _computed(cls, shape: ModelShape, training: Training, tokens: int | None = None) -> Self:
        step = _Step(shape, tokens or shape.sequence, _checked_options(training))
        return cls(
            tensor=step.tensor(),
            context=step.context(),
            expert=step.expert(),
            data=step.reduced(shape.parameters - shape.expert_parameters),
            expert_data=step.reduced(shape.expert_parameters),
            pipeline=step.pipeline(),
            sequence_parallel=step.how["sequence_parallel"],
            virtual_stages=step.how["virtual_stages"],
            layers=shape.layers,
            heads=shape.heads if shape.heads > 1 else None,
            experts=shape.experts or None,
            tflop=step.tflop(),
        )

    def per_group(
        self, *, tensor: int = 1, pipeline: int = 1, data: int = 1, context: int = 1, expert: int = 1
    ) -> Volumes:
        """Return the GB of each kind of collective in one group and step, by dimension, for these degrees.

        The stages of the pipeline count as equal. Gradients are reduced among all context and data ranks, in two steps
        that together move as much as one. The first step is within context groups (reduce_scatter and all_gather of all
        gradients), the second within data groups (of the part of each context rank). Gradients of divided experts are
        reduced among the data ranks with the same experts, the groups of "expert_data".

        Raises:
            JobGraphError: Names a degree that is wrong, above 1 without bytes in this traffic, no divisor of the heads
                or experts, or that needs more layers than the model has.
        """
        degrees = {"tensor": tensor, "context": context, "expert": expert, "data": data, "pipeline": pipeline}
        for dimension, degree in degrees.items():
            if _number(degree, dimension) > 1 and not getattr(self, dimension):
                raise JobGraphError(f"{dimension} = {degree}, but traffic has no bytes for {dimension}")
        if data % expert:
            raise JobGraphError(f"expert = {expert} does not divide data = {data}")
        self._refuse_more_than_the_model_has(tensor, pipeline, expert)
        sent_by = tensor if self.sequence_parallel else 1
        cut: Volumes = {
            "tensor": self._divided("tensor", pipeline * context),
            "context": self._divided("context", tensor * pipeline),
            "expert": self._divided("expert", pipeline * context * sent_by),
            "data": self._divided("data", tensor * pipeline),
            "expert_data": self._divided("expert_data", tensor * pipeline * expert),
            "pipeline": self._divided("pipeline", context * sent_by / self.virtual_stages),
        }
        if expert == 1:
            _add(cut["data"], cut.pop("expert_data"))
        for dimension in ("data", "expert_data"):
            if context > 1 and dimension in cut:
                cut[dimension] = _apart(cut[dimension], cut["context"], context)
        sizes = {**degrees, "expert_data": data // expert}
        return {dimension: volume for dimension, volume in cut.items() if sizes[dimension] > 1 and volume}

    def _refuse_more_than_the_model_has(self, tensor: int, pipeline: int, expert: int) -> None:
        if self.heads and self.heads % tensor:
            raise JobGraphError(f"tensor = {tensor} does not divide the {self.heads} attention heads")
        if self.experts and self.experts % expert:
            raise JobGraphError(f"expert = {expert} does not divide the {self.experts} experts of a layer")
        parts = pipeline * self.virtual_stages if pipeline > 1 else 1
        if self.layers and parts > self.layers:
            of_each = f" of {self.virtual_stages} parts" if self.virtual_stages > 1 else ""
            raise JobGraphError(f"pipeline = {pipeline}{of_each} is more than the {self.layers} layers")

    @property
    def wrapped_share(self) -> float:
        """Return the GB from the last stage of an interleaved pipeline to the first, divided by that between successive
        stages.
        """
        return (self.virtual_stages - 1) / self.virtual_stages

    def _divided(self, dimension: str, parts: float) -> dict[str, float]:
        volume = cast("tuple[tuple[str, float], ...]", getattr(self, dimension))
        return {kind: gigabytes / parts for kind, gigabytes in volume}


def _add(volume: dict[str, float], more: Mapping[str, float]) -> None:
    for kind, gigabytes in more.items():
        volume[kind] = volume.get(kind, 0.0) + gigabytes


def _apart(volume: Mapping[str, float], within: dict[str, float], parts: int) -> dict[str, float]:
    """Return what remains among groups of a reduction that begins and ends within them; add the rest to `within`.

    parts: the tasks of a group, each of which has an equal part in between.
    """
    for kind, gigabytes in volume.items():
        halves = ("reduce_scatter", "all_gather") if kind == "all_reduce" else (kind,)
        _add(within, dict.fromkeys(halves, gigabytes))
    return {kind: gigabytes / parts for kind, gigabytes in volume.items()}


@dataclass(frozen=True, slots=True)
class _Step:
    """A training step of a model, of `tokens` tokens a sequence; one method for each formula."""

    shape: ModelShape
    tokens: int
    how: Mapping[str, Any]
    """A value for each option of `Training`."""

    @property
    def _all_tokens(self) -> int:
        """The tokens of all micro-batches of a data rank: m b s."""
        sequences: int = self.how["micro_batches"] * self.how["micro_batch_size"]
        return sequences * self.tokens

    @property
    def _activations(self) -> float:
        """GB of a layer's output for all micro-batches of a data rank: m b s h."""
        numbers = self._all_tokens * self.shape.hidden
        return float(numbers * self.how["activation_bytes"] / _BYTES_PER_GB)

    @property
    def _passes(self) -> int:
        return 3 if self.how["recompute"] else 2

    def tflop(self) -> float:
        """Return 6 operations for each token and weight, and 12 L h s for its attention (arXiv 2204.02311, appendix B).

        Those are 2 in the forward pass and 4 in the backward pass. With `recompute`, layers do the forward pass twice,
        and the sum is eq. 3 of arXiv 2104.04473.
        """
        shape = self.shape
        in_layers = shape.multiplied_in_layers + shape.multiplied_in_attention(self.tokens)
        each = (self._passes + 1) * in_layers + 3 * shape.vocabulary * shape.hidden
        return 2 * each * self._all_tokens / _OPERATIONS_PER_TFLOP

    def tensor(self) -> dict[str, float]:
        """Return two all-reduces of b s h for each layer and pass (arXiv 2104.04473, section 3.2).

        With sequence parallelism, an all-gather and a reduce-scatter take the place of each (arXiv 2205.05198, section
        4.2.2).
        """
        gigabytes = self.shape.layers * 2 * self._passes * self._activations
        parallel = self.how["sequence_parallel"]
        return dict.fromkeys(("all_gather", "reduce_scatter") if parallel else ("all_reduce",), gigabytes)

    def pipeline(self) -> float:
        """Return b s h for each micro-batch and way between two stages (arXiv 2104.04473, section 3.2)."""
        return 2 * self._activations

    def context(self) -> dict[str, float]:
        """Return the keys and values that go round in each pass, and their gradients (arXiv 2310.01889)."""
        share = self.shape.key_value_size / self.shape.hidden
        round_once = self.shape.layers * share * self._activations
        return {"all_gather": self._passes * round_once, "reduce_scatter": round_once}

    def expert(self) -> float | tuple[()]:
        """Return k tokens sent to experts and back for each token, layer and pass (arXiv 2006.16668, section 3)."""
        if not self.shape.experts:
            return ()
        dispatched: float = self.how["dispatch_bytes"] / self.how["activation_bytes"]
        routed = self.shape.expert_layers * self.shape.top_k * self._activations
        return self._passes * (dispatched + 1) * routed

    def reduced(self, parameters: int) -> dict[str, float]:
        """Return gradients that are reduced and parameters that are gathered (arXiv 1910.02054, section 7).

        In numbers for each parameter: 2 without ZeRO and in stages 1 and 2, 3 in stage 3.
        """
        gradients = parameters * self.how["gradient_bytes"] / _BYTES_PER_GB
        gathered = parameters * self.how["parameter_bytes"] / _BYTES_PER_GB
        if not parameters:
            return {}
        if not self.how["zero_stage"]:
            return {"all_reduce": gradients}
        return {
            "reduce_scatter": gradients,
            "all_gather": gathered * (2 if self.how["zero_stage"] == 3 else 1),
        }


# ---- checks --------------------------------------------------------------------------------------------------


def _number(value: object, what: str, *, low: int = 1, high: int = _MAX_NUMBER) -> int:
    return _checks.integer(value, what, JobGraphError, low=low, high=high)


def _flag(value: object, what: str) -> bool:
    return _checks.flag(value, what, JobGraphError)


def _stage(value: object, what: str) -> int:
    return _number(value, what, low=0, high=3)


def _bytes(value: object, what: str) -> float:
    return _checks.positive(value, what, JobGraphError, high=_MAX_BYTES)


_OPTIONS: Final[Mapping[str, tuple[Any, Any]]] = {
    "micro_batches": (1, _number),
    "micro_batch_size": (1, _number),
    "virtual_stages": (1, _number),
    "sequence_parallel": (False, _flag),
    "recompute": (False, _flag),
    "zero_stage": (0, _stage),
    "activation_bytes": (2.0, _bytes),
    "parameter_bytes": (2.0, _bytes),
    "gradient_bytes": (2.0, _bytes),
    "dispatch_bytes": (None, _bytes),
}
"""Default and check of each option of `Training`."""


def _checked_options(training: Training) -> dict[str, Any]:
    """Return a value for each option; JobGraphError names an unknown or wrong one."""
    for name in training:
        if name not in _OPTIONS:
            raise JobGraphError(f"{name} is {not_one_of(name, _OPTIONS)}")
    given = {name: _OPTIONS[name][1](value, name) for name, value in training.items()}
    options = {name: given.get(name, default) for name, (default, _) in _OPTIONS.items()}
    if options["dispatch_bytes"] is None:
        options["dispatch_bytes"] = options["activation_bytes"]
    return options


def _checked_volume(value: Volume, dimension: str) -> tuple[tuple[str, float], ...]:
    """Return the GB of each kind in canonical form, sorted by kind; JobGraphError names a wrong kind or number."""
    if not isinstance(value, Mapping | tuple):
        usual = DEFAULT_KINDS.get(dimension, "all_reduce")
        return ((usual, _checks.positive(value, dimension, JobGraphError, high=MAX_GIGABYTES)),)
    checked: dict[str, float] = {}
    for pair in value if isinstance(value, tuple) else value.items():
        parts = _checks.sequence(pair, f"an item of {dimension}", JobGraphError)
        if len(parts) != 2:
            raise JobGraphError(f"{dimension} has {_checks.shown(parts)}, which is not (kind, gigabytes)")
        kind, gigabytes = parts
        _checks.one_of(kind, f"kind of {dimension}", _KINDS.get(dimension, KINDS), JobGraphError)
        if kind in checked:
            raise JobGraphError(f"{dimension} has the kind {kind!r} twice")
        place = f"{dimension}[{kind!r}]"
        checked[kind] = _checks.positive(gigabytes, place, JobGraphError, high=MAX_GIGABYTES)
    return tuple(sorted(checked.items()))

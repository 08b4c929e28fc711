"""Shapes of published transformer models, and the numbers of parameters and operations that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """The sizes of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1)."""

    query_rank: int
    """Size to which queries are compressed."""
    key_value_rank: int
    """Size to which keys and values are compressed together."""
    rotary_size: int
    """Size of the part of a query that encodes its position, for each head; all heads share that part of a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The shape of a decoder-only transformer, as its paper states it."""

    layers: int
    hidden: int
    heads: int
    key_value_heads: int
    head_size: int
    feed_forward: int
    """Inner size of a feed-forward layer; in layers of experts, of each expert."""
    vocabulary: int
    sequence: int
    """Tokens of a training sequence."""
    gated: bool = True
    """True for Llama's kind: gated feed-forward layers (three matrices, not two), no biases, rotary positions and an
    output layer of its own. False for GPT's: biases, learned positions, and embeddings that are also the output layer.
    """
    experts: int = 0
    """Experts of a layer among which a router chooses."""
    top_k: int = 0
    """Experts chosen for each token."""
    shared_experts: int = 0
    """Experts of a layer that all tokens use."""
    dense_layers: int = 0
    """Layers without experts, in a model that has some."""
    dense_feed_forward: int = 0
    """Inner size of the feed-forward layers in `dense_layers`."""
    latent: LatentAttention | None = None
    source: str = ""
    """The publication that states the shape."""

    @property
    def expert_layers(self) -> int:
        """Return the number of layers that have experts."""
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def key_value_size(self) -> int:
        """Return the count of numbers in the keys and values of a token in one layer, all heads together."""
        rotary = self.latent.rotary_size if self.latent else 0
        return self.key_value_heads * (2 * self.head_size + rotary)

    @property
    def parameters(self) -> int:
        """Return the number of parameters; for GPT's kind, by eq. 2 of arXiv 2104.04473.

        The last normalisation is left out, as in that equation.
        """
        layers = self.layers * (self._attention + self._small) + self.expert_parameters
        layers += self._used_by_all
        embeddings = 2 * self.vocabulary if self.gated else self.vocabulary + self.sequence
        return layers + embeddings * self.hidden

    @property
    def expert_parameters(self) -> int:
        """Return the number of parameters of the experts among which routers choose."""
        return self.expert_layers * self.experts * self._matrices(self.feed_forward)

    @property
    def multiplied_in_layers(self) -> int:
        """Return the number of weights in the layers that multiply each token; only chosen experts count."""
        chosen = self.expert_layers * self.top_k * self._matrices(self.feed_forward)
        return self.layers * self._attention + self._used_by_all + chosen

    def multiplied_in_attention(self, tokens: int) -> int:
        """Return the count of numbers in keys and values of a sequence that multiply each token, in all layers.

        tokens: tokens of a sequence; each attends to all, as if attention were not causal.
        """
        rotary = self.latent.rotary_size if self.latent else 0
        return self.layers * self.heads * (2 * self.head_size + rotary) * tokens

    @property
    def _used_by_all(self) -> int:
        """The weights of feed-forward layers without experts, of experts that all tokens use, and of routers."""
        shared = self.shared_experts * self._matrices(self.feed_forward) + self._router
        dense, inner = (
            (self.dense_layers, self.dense_feed_forward) if self.experts else (self.layers, self.feed_forward)
        )
        return self.expert_layers * shared + dense * self._matrices(inner)

    @property
    def _attention(self) -> int:
        """The weights of one attention layer."""
        values = self.heads * self.head_size
        if self.latent is None:
            return self.hidden * (2 * values + 2 * self.key_value_heads * self.head_size)
        low, both, rotary = self.latent.query_rank, self.latent.key_value_rank, self.latent.rotary_size
        queries = self.hidden * low + low * (values + self.heads * rotary)
        return queries + self.hidden * (both + rotary) + both * 2 * values + values * self.hidden

    @property
    def _small(self) -> int:
        """The biases of a layer of GPT's kind, and the scales of two normalisations."""
        return 2 * self.hidden if self.gated else 9 * self.hidden + self.feed_forward

    @property
    def _router(self) -> int:
        return self.hidden * self.experts

    def _matrices(self, inner: int) -> int:
        return (3 if self.gated else 2) * self.hidden * inner


def _gpt(layers: int, hidden: int, heads: int, vocabulary: int, source: str) -> ModelShape:
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        key_value_heads=heads,
        head_size=hidden // heads,
        feed_forward=4 * hidden,
        vocabulary=vocabulary,
        sequence=2048,
        gated=False,
        source=source,
    )


def _megatron(layers: int, hidden: int, heads: int) -> ModelShape:
    return _gpt(layers, hidden, heads, 51_200, "Narayanan et al., SC'21 (arXiv 2104.04473), table 1")


def _llama(layers: int, hidden: int, heads: int, kv: int, inner: int, generation: int) -> ModelShape:
    vocabulary, sequence, source = _LLAMA[generation]
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        key_value_heads=kv,
        head_size=hidden // heads,
        feed_forward=inner,
        vocabulary=vocabulary,
        sequence=sequence,
        source=source,
    )


_LLAMA: Final = {
    2: (32_000, 4096, "Touvron et al. 2023 (arXiv 2307.09288)"),
    3: (128_256, 8192, "Grattafiori et al. 2024 (arXiv 2407.21783), table 3"),
}
"""Vocabulary, training sequence and source of each generation."""

MODELS: Final[Mapping[str, ModelShape]] = MappingProxyType(
    {
        "gpt3-175b": _gpt(96, 12_288, 96, 50_257, "Brown et al. 2020 (arXiv 2005.14165), table 2.1"),
        "megatron-1.7b": _megatron(24, 2304, 24),
        "megatron-3.6b": _megatron(30, 3072, 32),
        "megatron-7.5b": _megatron(36, 4096, 32),
        "megatron-18.4b": _megatron(40, 6144, 48),
        "megatron-39.1b": _megatron(48, 8192, 64),
        "megatron-76.1b": _megatron(60, 10_240, 80),
        "megatron-145.6b": _megatron(80, 12_288, 96),
        "megatron-310.1b": _megatron(96, 16_384, 128),
        "megatron-529.6b": _megatron(105, 20_480, 128),
        "megatron-1008b": _megatron(128, 25_600, 160),
        "llama2-7b": _llama(32, 4096, 32, 32, 11_008, 2),
        "llama2-13b": _llama(40, 5120, 40, 40, 13_824, 2),
        "llama2-70b": _llama(80, 8192, 64, 8, 28_672, 2),
        "llama3-8b": _llama(32, 4096, 32, 8, 14_336, 3),
        "llama3-70b": _llama(80, 8192, 64, 8, 28_672, 3),
        "llama3-405b": _llama(126, 16_384, 128, 8, 53_248, 3),
        "mixtral-8x7b": ModelShape(
            layers=32,
            hidden=4096,
            heads=32,
            key_value_heads=8,
            head_size=128,
            feed_forward=14_336,
            vocabulary=32_000,
            sequence=32_768,
            experts=8,
            top_k=2,
            source="Jiang et al. 2024 (arXiv 2401.04088), table 1",
        ),
        "deepseek-v3": ModelShape(
            layers=61,
            hidden=7168,
            heads=128,
            key_value_heads=128,
            head_size=128,
            feed_forward=2048,
            vocabulary=129_280,
            sequence=4096,
            experts=256,
            top_k=8,
            shared_experts=1,
            dense_layers=3,
            dense_feed_forward=18_432,
            latent=LatentAttention(query_rank=1536, key_value_rank=512, rotary_size=64),
            source="DeepSeek-AI 2024 (arXiv 2412.19437), section 4.2",
        ),
    }
)
"""The shape of each model, by name."""

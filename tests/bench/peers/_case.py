"""What a case file says, and training and inference of a torch network as every case has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Batch = Mapping[str, Any]
"""By field of the recipe's data: a tensor [N, ...], or on a ragged axis (values [T, ...], lengths [N])."""
Step = Callable[[int], None]
"""Runs step i."""


@dataclass(frozen=True)
class Case:
    """One network on both sides and what is asked of ours.

    Attributes:
        recipe: ours.
        batch: samples of a step.
        steps: of ours that a turn times.
        speed: how many times as fast as the fastest peer we are to be, or as `against`.
        memory: the largest share of the leanest peer's peak memory that we may hold.
        variants: of the peer; the fastest and the leanest count.
        least_mb: a peak that is small enough whatever the peer holds (parameters and what the optimizer keeps for them).
        predict: time forward passes of the entry `predict` instead of training steps.
        against: the variant that speed and memory are asked of, where it is not the best of all: "torch eager".
        options: more `-o` settings of ours, and of the data that both sides read.
    """

    recipe: str
    batch: int
    steps: int
    speed: float
    memory: float = 0.5
    variants: tuple[str, ...] = ("eager",)
    least_mb: float = 0.0
    predict: bool = False
    against: str = ""
    options: tuple[str, ...] = ()


def trained(
    loss: Callable[..., Any],
    parameters: Any,
    optimizer: Any,
    batches: Sequence[Sequence[Any]],
    **settings: Any,
) -> Step:
    """Steps that train: `loss(*batch)` is a scalar; `optimizer` a class of torch.optim, in its fused form."""
    made = optimizer([p for p in parameters if p.requires_grad], fused=True, **settings)

    def step(i: int) -> None:
        made.zero_grad(set_to_none=True)
        loss(*batches[i % len(batches)]).backward()
        made.step()

    return step


def inferred(network: Any, batches: Sequence[Sequence[Any]], trace: bool = False) -> Step:
    """Forward passes; `trace` freezes and optimizes the network for the first batch's shapes."""
    import torch

    network.eval()
    run = network
    if trace:
        with torch.no_grad():
            run = torch.jit.trace(network, tuple(batches[0]), check_trace=False)
            run = torch.jit.optimize_for_inference(torch.jit.freeze(run))

    def step(i: int) -> None:
        with torch.inference_mode():
            run(*batches[i % len(batches)])

    return step

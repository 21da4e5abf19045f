"""Weights for a network that has not been trained, such that signals neither die nor grow."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_KERNELS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, *_TRANSPOSED, nn.Linear)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def enliven(model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    """Gives every layer weights of He's kind, scaled so that it gives a variance of 1.

    A layer's output is measured while the inputs go through the network once (arxiv.org/abs/
    1511.06422). Filters over several channels have a sum of zero, or the common mean of values
    behind a ReLU would grow until every input gave the same answer (arxiv.org/abs/2101.08692).
    """
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim <= 1 or _is_layer_scale(name):
                is_bias = name.endswith("bias") or name.rpartition(".")[2].startswith("bias_")
                if is_bias:
                    nn.init.normal_(parameter, std=0.1)
                else:
                    nn.init.uniform_(parameter, 0.75, 1.25)
        handles = []
        for module in model.modules():
            if isinstance(module, _NORMS) and module.running_mean is not None:
                nn.init.normal_(module.running_mean, std=0.1)
                nn.init.uniform_(module.running_var, 0.5, 1.5)
            elif isinstance(module, _KERNELS):
                # Some are never called, but their weights are used: attention's, for one.
                nn.init.normal_(module.weight, std=module.weight[0].numel() ** -0.5)
                _sum_to_zero(module)
                handles.append(module.register_forward_hook(_scale))
        model.eval()(*inputs)
        for handle in handles:
            handle.remove()


def _is_layer_scale(name: str) -> bool:
    """Factors of a residual branch, which start at 1e-6: untrained, the branch would be dead."""
    return name.rpartition(".")[2] in ("gamma", "layer_scale")


def _sum_to_zero(module: nn.Module) -> None:
    weight = module.weight
    if weight.shape[1] > 1 and not isinstance(module, _TRANSPOSED):
        axes = tuple(range(1, weight.ndim))
        weight -= weight.mean(axes, keepdim=True)


def _scale(module: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
    if getattr(module, "_enlivened", False):
        return output
    module._enlivened = True
    module.weight /= max(float(output.std()), 1e-3)
    return module.forward(*given)

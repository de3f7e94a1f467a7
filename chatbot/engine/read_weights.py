"""Reads a model's weights into memory in the form that was planned; knows no prompts or caches."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import Any

from chatbot.engine.memory import MemoryPlan
from chatbot.engine.models import ModelFiles
from chatbot.errors import ModelError
from retrieval.slow_imports import READING_MODELS

FLASH = "flash_attention_2"


def read_weights(
    files: ModelFiles, plan: MemoryPlan, *, attention: str = "auto", on_cuda: bool = False
) -> Any:
    """The model, ready to be run. Raises ModelError with one sentence.

    8-bit weights on a CPU are packed layer by layer from the file's own numbers. Those stay pages
    of the file that the system can drop, so no more is taken than the packed weights (measured:
    143 MiB of the process's own for 129 MiB of the demo model's).
    """
    import torch

    dtype = torch.float32 if plan.value_bytes == 4 else torch.bfloat16
    packed_here = plan.weights == "int8" and not on_cuda
    options: dict[str, Any] = {
        "dtype": "auto" if packed_here else dtype,
        "local_files_only": True,  # everything is on this machine by now
    }
    if plan.weights != "none" and not packed_here:
        options["quantization_config"] = _quantization(plan.weights)
        options["device_map"] = {"": 0 if on_cuda else "cpu"}
    elif on_cuda:
        options["device_map"] = {"": 0}
    names = attention_names(attention, on_cuda=on_cuda)
    model = _with_first(files, names, options)
    model.eval()
    if packed_here:
        from chatbot.engine.int8_linear import pack_model

        pack_model(model, dtype)
    return model


def attention_names(wanted: str, *, on_cuda: bool) -> tuple[str, ...]:
    """The library's names of the attentions to try, best first. Raises ModelError."""
    has_flash = on_cuda and importlib.util.find_spec("flash_attn") is not None
    if wanted == "flash":
        if not has_flash:
            raise ModelError(
                "The attention flash needs a CUDA device and the package flash-attn; install it, "
                "or choose --attention sdpa."
            )
        return (FLASH,)
    if wanted == "auto":
        return (*((FLASH,) if has_flash else ()), "sdpa", "eager")
    return (wanted,)


def _with_first(files: ModelFiles, names: tuple[str, ...], options: dict[str, Any]) -> Any:
    """The model with the first attention that it can do."""
    from transformers import AutoModelForCausalLM

    for name in names:
        try:
            with READING_MODELS:
                return AutoModelForCausalLM.from_pretrained(
                    str(files.folder), attn_implementation=name, **options
                )
        except Exception as error:  # the safetensors library raises nothing more particular
            about_attention = isinstance(error, (ValueError, ImportError)) and (
                "attention" in str(error).lower()
            )
            if not about_attention or name == names[-1]:
                raise ModelError(_cannot_load(files.folder, error)) from error
    raise AssertionError("no attention to try")


def _quantization(weights: str) -> Any:
    import torch
    from transformers import BitsAndBytesConfig

    if weights == "int8":
        # It would say at each layer of each token that bfloat16 is cast to float16.
        logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
    )


def _cannot_load(folder: Path, error: Exception) -> str:
    import torch

    if isinstance(error, torch.OutOfMemoryError) or "memory" in str(error).lower():
        return (
            f"Memory ran out while the weights of {folder.name} were read; choose a smaller "
            "quantization or model, or close other programs."
        )
    text = str(error).strip()
    reason = text.splitlines()[0][:200] if text else type(error).__name__
    if isinstance(error, ImportError):
        return (
            f"The model in {folder} needs a package that is not there or too old ({reason}); "
            "install it, or choose --quantization none and --attention sdpa."
        )
    return f"The model in {folder} cannot be loaded ({reason}); copy or download it again."

"""Where onnxruntime computes: its execution providers, by the names of devices."""

from __future__ import annotations

from dataclasses import dataclass, field

from restore.errors import UsageError, option, pip, shown

CPU = "CPUExecutionProvider"


@dataclass(frozen=True)
class Provider:
    """An execution provider.

    Attributes:
        name: what onnxruntime calls it.
        package: the build of onnxruntime that has it; another one is removed before it is installed.
        settings: its options. Those of Core ML let it take the body of a loop, where all iterations are.
        numbered: there may be several such devices.
    """

    name: str
    package: str
    settings: dict[str, str] = field(default_factory=dict)
    numbered: bool = True


PROVIDERS = {
    "cuda": Provider("CUDAExecutionProvider", "onnxruntime-gpu"),
    "coreml": Provider("CoreMLExecutionProvider", "onnxruntime on macOS", {"EnableOnSubgraphs": "1"}, numbered=False),
    "directml": Provider("DmlExecutionProvider", "onnxruntime-directml on Windows"),
}


def is_provided(device: str) -> bool:
    """True for a device that some build of onnxruntime knows, beside the processor."""
    return device.partition(":")[0] in PROVIDERS


def providers(device: str) -> list[tuple[str, dict[str, str]]]:
    """The providers for a device, the best first, with their options; the processor does what others cannot.

    Raises:
        UsageError: if the onnxruntime here has no such device; the message names the build that has.
    """
    import onnxruntime

    kind, _, number = device.partition(":")
    if kind not in PROVIDERS:
        return [(CPU, {})]
    provider = PROVIDERS[kind]
    if device != kind and not (provider.numbered and number.isdecimal()):
        raise UsageError(
            "names no device; give its kind, or kind and number such as cuda:0", option("device", shown(device))
        )
    if provider.name not in onnxruntime.get_available_providers():
        raise missing(device)
    return [(provider.name, provider.settings | ({"device_id": number} if number else {})), (CPU, {})]


def missing(device: str) -> UsageError:
    """The fault of a device that is not there."""
    package = PROVIDERS[device.partition(":")[0]].package
    remedy = f"{pip('uninstall onnxruntime')}, then {pip(f'install {package}')}"
    return UsageError(f"onnxruntime finds no such device; {remedy}, or leave it out", option("device", shown(device)))

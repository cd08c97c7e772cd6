"""A Space of the Hugging Face hub: restore a picture, and see how sure the prior is of every pixel."""

import gradio as gr
import numpy as np
from PIL import Image

import restore
from restore.zoo.search import shipped

PRIORS = ["auto", *(name for name in restore.list_models() if name.startswith(("conv-", "tap-mnist")))]


def repaired(picture: Image.Image, model: str, p: float) -> tuple[Image.Image, Image.Image, str]:
    """The restored picture, twice its standard deviations, and what was done; p is found if it is 0."""
    try:
        clean, answer = restore.denoise(picture, model, p or None, return_solution=True, max_pixels=2_000_000)
    except restore.RestoreError as fault:
        raise gr.Error(str(fault)) from fault
    doubt = Image.fromarray(np.uint8(255 * np.clip(2 * answer.deviations, 0, 1)))
    facts = [f"{answer.outcome} by {answer.model}: {answer.objection or answer.status.sentence}", *answer.notes]
    return clean, doubt, "\n".join(f"- {fact}" for fact in facts)


demo = gr.Interface(
    repaired,
    [
        gr.Image(type="pil", label="Damaged"),
        gr.Dropdown(PRIORS, value="auto", label="Prior"),
        gr.Slider(0, 0.35, value=0, step=0.01, label="Share of inverted pixels (0: found)"),
    ],
    [gr.Image(label="Restored", format="png"), gr.Image(label="Uncertainty", format="png"), gr.Markdown()],
    examples=[
        [str(shipped("assets") / name), "auto", 0] for name in ("page-noisy.png", "page-scan.png", "digit-noisy.png")
    ],
    title="restore",
    description="Repairs small, structured or printed pictures with trained priors.",
)

if __name__ == "__main__":
    demo.launch()

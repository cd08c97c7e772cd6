"""How much noise an image has, found from the image: by evidence, by lone pixels, by pixels held out."""

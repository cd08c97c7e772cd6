"""Sets of pictures drawn by code, which published priors learn from; `make.py` writes them."""

"""paddlecli: neural networks described in YAML recipes, on its own small C and CUDA core."""

__version__ = "0.1.0"

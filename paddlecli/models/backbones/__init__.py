"""Networks for pictures by their papers, one file a family. Parameter names follow the usual PyTorch
ones, with ``/`` for the dot: ``layer1/0/conv1/w``."""

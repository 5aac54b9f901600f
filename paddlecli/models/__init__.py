"""Networks: one typed function each, composing the layers that recipes use too."""

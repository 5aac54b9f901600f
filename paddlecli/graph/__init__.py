"""Networks as graphs with symbolic shapes: representation, builder, gradients, text form."""

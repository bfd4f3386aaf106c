"""Event files: the values of a step, as TensorBoard's programs write them."""

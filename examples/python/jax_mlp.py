"""A small regression with JAX: parameters, gradients and the loss every tenth step.

    python examples/python/jax_mlp.py runs/jax
    tornasole ls runs/jax
"""

import sys

import jax
import jax.numpy as jnp

import tornasole.jax as ts

keys = jax.random.split(jax.random.PRNGKey(0), 3)
parameters = {
    "hidden": {"kernel": jax.random.normal(keys[0], (4, 16)) * 0.5, "bias": jnp.zeros(16)},
    "out": {"kernel": jax.random.normal(keys[1], (16, 1)) * 0.25, "bias": jnp.zeros(1)},
}
inputs = jax.random.normal(keys[2], (64, 4))
targets = jnp.sin(inputs.sum(axis=1, keepdims=True))


def error(parameters, inputs, targets):
    """Mean of the squares."""
    hidden = jnp.tanh(inputs @ parameters["hidden"]["kernel"] + parameters["hidden"]["bias"])
    outputs = hidden @ parameters["out"]["kernel"] + parameters["out"]["bias"]
    return jnp.mean((outputs - targets) ** 2)


hook = ts.Hook(
    out_dir=sys.argv[1] if len(sys.argv) > 1 else "runs/jax",
    save_config=ts.SaveConfig(save_interval=10),
    include_collections=["weights", "biases", "gradients"],  # losses are saved without being asked for
)
loss_and_gradients = jax.jit(jax.value_and_grad(error))
for _ in range(50):
    loss, gradients = loss_and_gradients(parameters, inputs, targets)
    with hook.new_step(ts.modes.TRAIN):
        hook.save_loss(loss)
        hook.save_gradients(gradients)
        hook.save_parameters(parameters)
    if hook.stop_requested:
        break
    parameters = jax.tree_util.tree_map(lambda value, gradient: value - 0.1 * gradient, parameters, gradients)
hook.close()
print(f"the last loss is {float(loss):.4f}; the run is in {hook.out_dir}")

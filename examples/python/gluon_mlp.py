"""A small classifier of MXNet Gluon: weights, gradients and losses every tenth step.

    python examples/python/gluon_mlp.py runs/gluon
    tornasole ls runs/gluon
"""

import sys

import mxnet
from mxnet import autograd, gluon

import tornasole.mxnet as ts

mxnet.random.seed(0)
net = gluon.nn.Sequential()
net.add(gluon.nn.Dense(16, activation="relu"), gluon.nn.Dense(2))
net.initialize(mxnet.init.Xavier())
criterion = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})

hook = ts.Hook(
    out_dir=sys.argv[1] if len(sys.argv) > 1 else "runs/gluon",
    save_config=ts.SaveConfig(save_interval=10),
    include_collections=["weights", "gradients"],
)
hook.register_block(net)
hook.register_block(criterion)

hook.set_mode(ts.modes.TRAIN)
for _ in range(50):
    inputs = mxnet.nd.random.normal(shape=(32, 4))
    labels = inputs.sum(axis=1) > 0
    with autograd.record():
        loss = criterion(net(inputs), labels)
    loss.backward()
    trainer.step(32)
hook.close()
print(f"the last loss is {loss.mean().asscalar():.4f}; the run is in {hook.out_dir}")

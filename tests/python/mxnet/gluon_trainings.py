"""A small model of Gluon and its training, for the tests of the hook."""

import mxnet
import numpy
from mxnet import autograd, gluon


class Net(gluon.Block):
    """Two layers; the second is used twice."""

    def __init__(self, **options):
        super().__init__(**options)
        with self.name_scope():
            self.first = gluon.nn.Dense(4, activation="relu")
            self.twice = gluon.nn.Dense(4)
            self.last = gluon.nn.Dense(2)

    def forward(self, x):
        return self.last(self.twice(self.twice(self.first(x))))


class Training:
    """A model with fixed names, its loss and its trainer."""

    def __init__(self, hook=None, block=None, loss=None):
        mxnet.random.seed(0)
        numpy.random.seed(0)
        self.net = Net(prefix="net_") if block is None else block
        self.net.initialize(mxnet.init.Xavier(), force_reinit=True)
        self.loss = loss or gluon.loss.SoftmaxCrossEntropyLoss(prefix="softmaxcrossentropyloss0_")
        self.trainer = gluon.Trainer(self.net.collect_params(), "adam", {"learning_rate": 0.05})
        self.inputs = mxnet.nd.random.normal(shape=(6, 5))
        self.labels = mxnet.nd.array([0, 1, 0, 1, 1, 0])
        if hook is not None:
            hook.register_block(self.net)
            hook.register_block(self.loss)

    def step(self):
        """One step of training; the loss."""
        with autograd.record():
            value = self.loss(self.net(self.inputs), self.labels)
        value.backward()
        self.trainer.step(6)
        return value

    def run(self, steps):
        """So many of them."""
        for _ in range(steps):
            self.step()
        mxnet.nd.waitall()
        return self

    def evaluate(self):
        """One forward pass outside training."""
        return self.loss(self.net(self.inputs), self.labels)

    def weights(self):
        """Every parameter, by name."""
        return {p.name: p.data().asnumpy() for p in self.net.collect_params().values()}

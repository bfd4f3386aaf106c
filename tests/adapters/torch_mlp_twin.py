"""The training of libtorch_mlp.cc in Python: the same model, weights and data, so the same trial.

torch_mlp_twin.py DIRECTORY WEIGHTS sgd|adam; writes WEIGHTS first.
"""

import sys

import numpy
import torch

import tornasole.pytorch as smd


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(8, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.head = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Linear(16, 3))

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.fc1(x))))


def main(directory, weights, kind):
    torch.set_num_threads(1)
    torch.manual_seed(7)
    net = Net()
    values = numpy.random.default_rng(3)
    batches = [(values.normal(size=(16, 8)).astype("f4"), values.integers(0, 3, 16).astype("f4")) for _ in range(8)]
    with open(weights, "wb") as file:
        for parameter in net.parameters():
            file.write(parameter.detach().numpy().tobytes())
        for inputs, labels in batches:
            file.write(inputs.tobytes() + labels.tobytes())
    make = {"adam": lambda p: torch.optim.Adam(p, lr=0.01), "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)}
    optimizer = make[kind](net.parameters())
    hook = smd.Hook(
        out_dir=directory,
        save_config=smd.SaveConfig(save_interval=2),
        include_regex=["fc1_", "norm_", "head.0_", "head.1_", "relu"],
        include_collections=[
            *("weights", "biases", "gradients", "losses", "optimizer_variables", "optimizer_gradients"),
        ],
        capture_functional=True,
    )
    hook.register_module(net)
    hook.register_optimizer(optimizer)
    criterion = torch.nn.CrossEntropyLoss()
    for i, (inputs, labels) in enumerate(batches):
        net.train(i != 7)
        hook.set_mode(smd.modes.TRAIN if i != 7 else smd.modes.EVAL)
        inputs, labels = torch.from_numpy(inputs), torch.from_numpy(labels).long()
        if i == 7:
            with torch.no_grad():
                net(inputs)
            continue
        optimizer.zero_grad()
        loss = criterion(net(inputs), labels)
        hook.record_tensor_value("CrossEntropyLoss", loss)
        loss.backward()
        optimizer.step()
    hook.close()


main(*sys.argv[1:])

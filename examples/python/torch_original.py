"""The original of a network that examples/libtorch_port.cc is a port of: two steps, with every layer saved.

    python examples/python/torch_original.py runs/original weights.bin
    libtorch_port runs/port weights.bin
    tornasole diff runs/original runs/port --abs 1e-5

The port reads the same weights. The first difference is the layer that was ported wrongly.
"""

import sys

import torch
from torch import nn

import tornasole.pytorch as smd


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 12)
        self.norm = nn.LayerNorm(12, eps=1e-5)
        self.fc2 = nn.Linear(12, 3)

    def forward(self, x):
        return self.fc2(torch.tanh(self.norm(self.fc1(x))))


def main(out_dir, weights):
    torch.manual_seed(0)
    net = Net()
    with open(weights, "wb") as file:  # the parameters one after the other, as the port reads them
        for parameter in net.parameters():
            file.write(parameter.detach().numpy().tobytes())

    hook = smd.Hook(out_dir=out_dir, save_config=smd.SaveConfig(save_interval=1), include_regex=["_output_0$"])
    hook.register_module(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    hook.set_mode(smd.modes.TRAIN)
    for _ in range(2):
        optimizer.zero_grad()
        inputs = torch.linspace(-0.01, 0.01, 24).view(4, 6)
        loss = net(inputs).pow(2).mean()
        hook.record_tensor_value("loss", loss)
        loss.backward()
        optimizer.step()
    hook.close()


if __name__ == "__main__":
    main(*sys.argv[1:3])

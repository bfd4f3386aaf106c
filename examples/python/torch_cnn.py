"""A small convolutional network: statistics instead of tensors, activations of one layer, training and evaluation.

    python examples/python/torch_cnn.py runs/cnn
    tornasole stats runs/cnn gradient
"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

import tornasole.pytorch as smd


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3)
        self.fc1, self.fc2 = nn.Linear(16 * 16, 32), nn.Linear(32, 2)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x))
        return F.log_softmax(self.fc2(F.relu(self.fc1(x.flatten(1)))), dim=1)


def pictures(count):
    """Noise, with a bright upper half in every picture of class 1."""
    labels = torch.randint(0, 2, (count,))
    images = torch.randn(count, 1, 14, 14) * 0.5
    images[labels == 1, :, :7] += 1.0
    return images, labels


def main(out_dir):
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

    hook = smd.Hook(
        out_dir=out_dir,
        save_config=smd.SaveConfig(save_interval=5),
        include_collections=["gradients", "first_layer"],
        reduction_config=smd.ReductionConfig(reductions=["min", "max", "mean", "std"], norms=["l2"]),
    )
    hook.get_collection("first_layer").add_module_tensors(net.conv1, outputs=True)
    hook.register_module(net)

    for _ in range(4):
        net.train()
        hook.set_mode(smd.modes.TRAIN)
        for _ in range(10):
            inputs, labels = pictures(16)
            optimizer.zero_grad()
            value = F.nll_loss(net(inputs), labels)
            hook.record_tensor_value("nll_loss", value)  # a loss that is a function
            value.backward()
            optimizer.step()
        net.eval()
        hook.set_mode(smd.modes.EVAL)
        with torch.no_grad():
            inputs, labels = pictures(64)
            hook.record_tensor_value("nll_loss", F.nll_loss(net(inputs), labels))

    hook.close()
    print(f"the last loss is {value.item():.3f}; 'tornasole ls {out_dir}' shows the run")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/cnn")

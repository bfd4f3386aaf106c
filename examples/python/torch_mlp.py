"""A small classifier: weights, gradients and losses every tenth step.

    python examples/python/torch_mlp.py runs/mlp
    tornasole ls runs/mlp
"""

import sys

import torch
from torch import nn

import tornasole.pytorch as smd


def main(out_dir):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 4))
    loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    hook = smd.Hook(
        out_dir=out_dir,
        save_config=smd.SaveConfig(save_interval=10),
        include_collections=["weights", "biases", "gradients"],
    )
    hook.register_module(net)
    hook.register_loss(loss)
    hook.set_mode(smd.modes.TRAIN)

    centres = torch.randn(4, 20) * 2
    for _ in range(60):
        labels = torch.randint(0, 4, (32,))
        inputs = centres[labels] + torch.randn(32, 20)
        optimizer.zero_grad()
        outputs = net(inputs)
        value = loss(outputs, labels)
        value.backward()
        optimizer.step()
        hook.save_scalar("accuracy", (outputs.argmax(1) == labels).float().mean().item())

    hook.close()
    print(f"the last loss is {value.item():.3f}; 'tornasole ls {out_dir}' shows the run")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/mlp")

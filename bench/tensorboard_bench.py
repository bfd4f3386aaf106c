"""What histograms and curves for TensorBoard cost a PyTorch training, by one of three writers.

    tensorboard_bench.py tornasole|smdebug|summary_writer DIRECTORY

Two equal models take steps in turns, one of them with the writer: weights and gradients as histograms, the loss as a
curve, at every step. Prints the bare step and the extra time of the other as JSON, medians in microseconds. The hooks
also store what they show, as they always do; `stored` is the extra time of a hook that stores and shows nothing.
"""

import json
import os
import statistics
import sys
import time

os.environ.setdefault("SMDEBUG_LOG_LEVEL", "off")
os.environ.setdefault("TORNASOLE_LOG_LEVEL", "off")

import torch
from torch import nn

STEPS = 40


class Training:
    def __init__(self):
        torch.manual_seed(0)
        sizes = [784, 512, 512, 256, 10]
        layers = []
        for i in range(4):
            layers += [nn.Linear(sizes[i], sizes[i + 1])] + ([nn.ReLU()] if i < 3 else [])
        self.net, self.loss = nn.Sequential(*layers), nn.CrossEntropyLoss()
        self.inputs, self.labels = torch.randn(128, 784), torch.randint(0, 10, (128,))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-4)
        self.after = lambda step, loss: None

    def step(self, number):
        begin = time.perf_counter()
        self.optimizer.zero_grad()
        loss = self.loss(self.net(self.inputs), self.labels)
        loss.backward()
        self.optimizer.step()
        self.after(number, loss)
        return (time.perf_counter() - begin) * 1e6


def with_hook(package, directory, is_shown):
    training = Training()
    hook = package.Hook(out_dir=directory, export_tensorboard=is_shown,
                        save_config=package.SaveConfig(save_interval=1),
                        include_collections=["weights", "biases", "gradients", "losses"])
    hook.register_module(training.net)
    hook.register_loss(training.loss)
    return training, hook


def with_summary_writer(directory):
    from torch.utils.tensorboard import SummaryWriter

    training, writer = Training(), SummaryWriter(directory)

    def after(step, loss):
        for name, parameter in training.net.named_parameters():
            writer.add_histogram(f"weights/{name}", parameter, step)
            writer.add_histogram(f"gradients/{name}", parameter.grad, step)
        writer.add_scalar("loss", loss, step)

    training.after = after
    return training, writer


def measure(trainings):
    """The median step of each, which they take in turns."""
    times = {name: [] for name in trainings}
    for step in range(STEPS):
        for name, training in trainings.items():
            times[name].append(training.step(step))
        time.sleep(0.02)  # what was queued is written meanwhile, as in a step that takes longer
    return {name: statistics.median(values[5:]) for name, values in times.items()}


def main():
    kind, directory = sys.argv[1:]
    torch.set_num_threads(1)
    bare = Training()
    if kind == "summary_writer":
        shown, writer = with_summary_writer(directory)
        medians = measure({"bare": bare, "shown": shown})
        writer.close()
        stored = 0.0
    else:
        if kind == "smdebug":
            import smdebug.pytorch as package
        else:
            import tornasole.pytorch as package
        medians, stored = {}, {}
        for name, is_shown in (("stored", False), ("shown", True)):
            training, hook = with_hook(package, f"{directory}-{name}", is_shown)
            found = measure({"bare": bare, name: training})
            hook.close()
            medians[name] = found[name]
            medians["bare"] = found["bare"]
            stored[name] = found[name] - found["bare"]
        stored = stored["stored"]
    print(json.dumps({"bare_us": medians["bare"], "extra_us": medians["shown"] - medians["bare"], "stored_us": stored}))


if __name__ == "__main__":
    main()

"""A small transformer that knows nothing of tornasole: it is captured by the command that starts it.

    tornasole run --out runs/transformer examples/python/torch_transformer.py --steps 50
    tornasole ls runs/transformer
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Transformer(nn.Module):
    """Predicts the next letter of a text."""

    def __init__(self, letters, width=32, context=16):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, dim_feedforward=64, dropout=0.1, batch_first=True) for _ in range(2)
        )
        self.head = nn.Linear(width, letters)

    def forward(self, x):
        length = x.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        x = self.letters(x) + self.places(torch.arange(length))
        for block in self.blocks:
            x = block(x, src_mask=mask)
        return self.head(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    text = "the quick brown fox jumps over the lazy dog. " * 20
    letters = sorted(set(text))
    data = torch.tensor([letters.index(letter) for letter in text])
    net = Transformer(len(letters))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for _ in range(arguments.steps):
        starts = torch.randint(0, len(data) - 17, (8,))
        window = torch.stack([data[start : start + 17] for start in starts])
        optimizer.zero_grad()
        logits = net(window[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    print(f"the last loss is {loss.item():.3f}")


if __name__ == "__main__":
    main()

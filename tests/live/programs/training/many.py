# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes many small training steps. argv[1]: width of the layers. Lines of stdin: "run N" makes N steps."""
import sys

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402
from torch import nn  # noqa: E402


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    width = int(sys.argv[1])
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batch = torch.randn(8, width)
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line.partition(" ")[2])):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
        print("done", flush=True)


main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains, and tells of it through the loggers that its words name: logging, or stand-ins with the names of those of libraries."""
import logging
import sys
import time
import types

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402


def library(module, kind, *names):
    """A module with a class whose methods do nothing."""
    made = types.ModuleType(module)
    setattr(made, kind, type(kind, (), {name: lambda self, *args, **kwargs: None for name in names}))
    sys.modules[module] = made
    return getattr(made, kind)()


class Secret:
    def __str__(self):
        sys.exit("code of the program ran for a text that nobody wants")


class Sink(logging.Handler):
    def emit(self, record):
        pass


log = logging.getLogger("trainer")
log.setLevel("INFO")
log.propagate = False
log.addHandler(Sink())
bar = library("tqdm.std", "tqdm", "set_postfix", "set_postfix_str", "set_description")
writer = library("torch.utils.tensorboard.writer", "SummaryWriter", "add_scalar", "add_scalars")
run = library("wandb.sdk.wandb_run", "Run", "_log")
type(run).log = lambda self, data, step=None, commit=None: self._log(data=data, step=step, commit=commit)
wandb_log = run.log
csv = library("lightning.fabric.loggers.csv_logs", "CSVLogger", "log_metrics")
told = torch.tensor(0.25, requires_grad=True)
TELL = {
    "logging": lambda: (log.info("epoch %d: loss: %.3f, lr=%s", 3, told, "1e-3"), log.info("%s", Secret())),
    "text": lambda: log.info("validation loss 0.5 after 17 s, train loss: nan, users: 4"),
    "server": lambda: log.info("GET /users took: 17, status=200"),
    "tqdm": lambda: bar.set_postfix(loss=told, epoch=3, refresh=False),
    "dict": lambda: bar.set_postfix({"loss": 0.25, "top5": 0.75}, epoch=3),
    "bar": lambda: bar.set_postfix_str("loss=0.250, epoch=3"),
    "describe": lambda: bar.set_description("epoch 3 loss 0.25"),
    "writer": lambda: (writer.add_scalar("loss", 0.25, 7), writer.add_scalars("acc", {"a": 1, "b": 2}, 7)),
    "wandb": lambda: wandb_log({"loss": told, "epoch": 3, "text": "none", "grad_norm": 2}),
    "csv": lambda: csv.log_metrics({"loss": 0.25, "epoch": 3}, step=7),
}
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
print("ready", flush=True)
while True:
    TELL[sys.argv[1]]()
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
    time.sleep(0.012)

# SPDX-License-Identifier: GPL-3.0-or-later
"""A loop of one of the kinds that people train with, which measures its own parts by clocks.

Usage: kinds.py KIND [WIDTH]. Lines on stdin: "begin" measures from the next step on, "end" prints as JSON what it was
in since: part, begin and end in seconds since the epoch, one after the other.
"""
import contextlib
import copy
import io
import json
import select
import sys
import time

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

WIDTH, BATCH, PERIOD = int((sys.argv[2:] or [192])[0]), 64, 6


class Clock:
    """A part that begins within another one interrupts it."""

    def __init__(self):
        self.open, self.since, self.times = ["other"], 0, []

    def turn(self):
        now = time.time()
        self.times.append((self.open[-1], self.since, now))
        self.since = now

    @contextlib.contextmanager
    def part(self, name):
        self.turn()
        self.open.append(name)
        try:
            yield
        finally:
            self.turn()
            self.open.pop()

    def within(self, name, call):
        with self.part(name):
            return call()


CLOCK = Clock()


class Batches(Dataset):
    def __len__(self):
        return 1 << 30

    def __getitem__(self, number):
        return torch.randn(WIDTH) * 0.5 + (number % 7)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Model(nn.Module):
    def __init__(self, checkpoints=False, depth=3):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(depth)])
        self.head = nn.Linear(WIDTH, WIDTH)
        self.checkpoints = checkpoints

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, **OPTIONS) if self.checkpoints else layer(x)
        return self.head(x)


OPTIONS = {"use_reentrant": False}
BATCHES = iter(DataLoader(Batches(), batch_size=BATCH))


def batch():
    with CLOCK.part("data loading"):
        return next(BATCHES)


def forward(model, x):
    with CLOCK.part("forward"):
        return model(x)


def backward(loss):
    with CLOCK.part("backward"):
        loss.backward()


def step(optimizer, *arguments):
    with CLOCK.part("optimizer"):
        optimizer.step(*arguments)


def once(model, optimizer):
    loss = forward(model, batch()).square().mean()
    backward(loss)
    step(optimizer)
    optimizer.zero_grad()


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-4)


def plain():
    model = Model()
    optimizer = adam(model)
    while True:
        yield
        once(model, optimizer)


def sgd():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    while True:
        yield
        once(model, optimizer)


def with_closure(optimizer_of):
    model = Model()
    optimizer = optimizer_of(model.parameters())

    def closure():
        with CLOCK.part("other"):
            optimizer.zero_grad()
            loss = forward(model, batch()).square().mean()
            backward(loss)
            return loss

    while True:
        yield
        step(optimizer, closure)


def closure():
    return with_closure(lambda parameters: torch.optim.SGD(parameters, lr=1e-4, momentum=0.9))


def lbfgs():
    return with_closure(lambda parameters: torch.optim.LBFGS(parameters, lr=1e-3, max_iter=4, history_size=5))


class Trainer:
    """The calls between Lightning's loop and the model: the optimizer runs all of it."""

    def __init__(self):
        self.net = Model()
        self.optimizer = adam(self.net)

    def training_step(self, x):
        return forward(self.net, x).square().mean()

    def closure(self, x):
        with CLOCK.part("other"):
            loss = self.training_step(x)
            self.optimizer.zero_grad()
            backward(loss)
            return loss

    def optimizer_step(self, x):
        step(self.optimizer, lambda: self.closure(x))

    def run(self):
        while True:
            yield
            self.optimizer_step(batch())


def trainer():
    return Trainer().run()


def evaluation():
    model = Model()
    optimizer, count = adam(model), 0
    while True:
        yield
        once(model, optimizer)
        count += 1
        if count % PERIOD:
            continue
        model.eval()
        with torch.no_grad():
            for _ in range(4 * PERIOD):
                x = batch()
                with CLOCK.part("evaluation (no gradient)"):
                    model(x)
        model.train()


@torch.no_grad()
def validate(model):
    for _ in range(PERIOD):
        x = batch()
        with CLOCK.part("evaluation (no gradient)"):
            model(x)


def decorated():
    model = Model()
    optimizer, count = adam(model), 0
    while True:
        yield
        once(model, optimizer)
        count += 1
        if count % PERIOD == 0:
            validate(model)


def checkpointing():
    model = Model(checkpoints=True)
    optimizer = adam(model)
    while True:
        yield
        once(model, optimizer)


def reentrant():
    OPTIONS["use_reentrant"] = True
    model = Model(checkpoints=True)
    optimizer = adam(model)
    while True:
        yield
        x = batch().requires_grad_()
        backward(forward(model, x).square().mean())
        step(optimizer)
        optimizer.zero_grad()


def accumulation():
    model = Model()
    optimizer = adam(model)
    while True:
        yield
        for _ in range(4):
            backward(forward(model, batch()).square().mean() / 4)
        step(optimizer)
        optimizer.zero_grad()


def gan():
    generator, critic = Model(), Model(depth=2)
    ours, theirs = adam(generator), adam(critic)
    while True:
        yield
        x = batch()
        made = forward(generator, torch.randn_like(x))
        loss = forward(critic, x).mean() - forward(critic, made.detach()).mean()
        backward(loss)
        step(theirs)
        theirs.zero_grad()
        backward(-forward(critic, made).mean())
        step(ours)
        ours.zero_grad()
        theirs.zero_grad()


def models():
    encoder, decoder = Model(depth=2), Model(depth=1)
    optimizer = torch.optim.AdamW([*encoder.parameters(), *decoder.parameters()], lr=1e-4)
    while True:
        yield
        loss = forward(decoder, forward(encoder, batch())).square().mean()
        backward(loss)
        step(optimizer)
        optimizer.zero_grad()


def ema():
    model, mean = Model(), Model()
    optimizer = adam(model)
    while True:
        yield
        once(model, optimizer)
        with torch.no_grad():
            for old, new in zip(mean.parameters(), model.parameters()):
                for _ in range(3):
                    old.mul_(0.999).add_(new, alpha=0.001)


class Holder:
    def __init__(self):
        self.parts = {"models": [Model()]}

    @property
    def model(self):
        return self.parts["models"][0]


def hidden():
    holder = Holder()
    optimizer = adam(holder.model)
    while True:
        yield
        once(holder.model, optimizer)


def amp():
    model = Model()
    optimizer = adam(model)
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    while True:
        yield
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = forward(model, batch()).square().mean()
        backward(scaler.scale(loss))
        with CLOCK.part("optimizer"):
            scaler.step(optimizer)
            scaler.update()
        optimizer.zero_grad()


def compiled():
    model = torch.compile(Model(), backend="aot_eager")
    optimizer = adam(model)
    while True:
        yield
        once(model, optimizer)


def ranks():
    """Of two ranks, the second is late at each step: the first one waits for it in backward."""
    torch.distributed.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(Model(depth=1))
    optimizer = adam(model)
    while True:
        yield
        if torch.distributed.get_rank() and sys.argv[1] == "ranks":
            time.sleep(0.15)
        once(model, optimizer)


def even():
    """As ranks(), and none is late."""
    return ranks()


def sharded():
    """As even(), and each rank keeps a part of the model."""
    from torch.distributed.fsdp import fully_shard

    torch.distributed.init_process_group("gloo")
    model = Model()
    for each in (*model.layers, model):
        fully_shard(each)
    optimizer = adam(model)
    while True:
        yield
        once(model, optimizer)


class TimedBatches:
    """Batches of a loader, for a trainer that asks for them itself."""

    def __init__(self, data, **options):
        self.loader = DataLoader(data, batch_size=BATCH, **options)

    def __iter__(self):
        batches = iter(self.loader)
        while True:
            with CLOCK.part("data loading"):
                found = next(batches, None)
            if found is None:
                return
            yield found

    def __len__(self):
        return len(self.loader)


def timed_optimizer(optimizer):
    """The same. Schedulers of the rate wrap its step(), which has to be a method."""
    inner = type(optimizer)

    class Timed(inner):
        def step(self, *arguments, **named):
            with CLOCK.part("optimizer"):
                return inner.step(self, *arguments, **named)

    optimizer.__class__ = Timed
    return optimizer


def lightning():
    """Lightning itself, which runs the loop."""
    try:
        from lightning import LightningModule, Trainer as Lightning
    except ImportError:
        from pytorch_lightning import LightningModule, Trainer as Lightning

    class Module(LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Model()

        def training_step(self, x, index):
            return forward(self.net, x).square().mean()

        def backward(self, loss, *arguments):
            backward(loss)

        def optimizer_step(self, epoch, index, optimizer, *arguments, **named):
            closure = next(each for each in [*arguments, *named.values()] if callable(each))
            step(optimizer, lambda: CLOCK.within("other", closure))

        def configure_optimizers(self):
            return adam(self)

        def on_train_batch_end(self, *arguments):
            turn()

    Lightning(max_epochs=-1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
              enable_model_summary=False, use_distributed_sampler=False).fit(Module(), TimedBatches(Batches()))


def hf():
    """Trainer of Hugging Face, with accumulation."""
    import tempfile
    from transformers import Trainer as HF, TrainerCallback, TrainingArguments

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Model()

        def forward(self, x):
            return {"loss": forward(self.net, x).square().mean()}

    class Items(Batches):
        def __getitem__(self, number):
            return {"x": super().__getitem__(number)}

    class Timed(HF):
        def get_train_dataloader(self):
            return TimedBatches(self.train_dataset)

    class Turn(TrainerCallback):
        def on_step_end(self, *arguments, **named):
            turn()

    inner = torch.Tensor.backward
    torch.Tensor.backward = lambda loss, *arguments, **named: CLOCK.within(
        "backward", lambda: inner(loss, *arguments, **named))
    model = Net()
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            output_dir=folder, max_steps=1 << 30, per_device_train_batch_size=BATCH, report_to=[], save_strategy="no",
            gradient_accumulation_steps=3, logging_steps=1 << 29, disable_tqdm=True, max_grad_norm=0)
        Timed(model=model, args=settings, train_dataset=Items(), callbacks=[Turn()],
              optimizers=(timed_optimizer(adam(model)), None)).train()


def accelerate():
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    plain_model = Model()
    model, optimizer, batches = accelerator.prepare(plain_model, adam(plain_model), DataLoader(
        Batches(), batch_size=BATCH))
    batches = iter(batches)
    while True:
        yield
        for _ in range(2):
            with CLOCK.part("data loading"):
                x = next(batches)
            with accelerator.accumulate(model):
                loss = forward(model, x).square().mean()
                with CLOCK.part("backward"):
                    accelerator.backward(loss)
                step(optimizer)
                optimizer.zero_grad()


def loader():
    """Its data take long."""
    model = Model()
    optimizer = adam(model)
    Batches.__getitem__ = slow_item
    while True:
        yield
        once(model, optimizer)


def saves():
    """Writes its whole model, every third step."""
    model = Model()
    optimizer, count = adam(model), 0
    while True:
        yield
        once(model, optimizer)
        count += 1
        if count % 3 == 0:
            with CLOCK.part("checkpoint"):
                for _ in range(20):
                    file = io.BytesIO()
                    torch.save(model, file)
            copy.deepcopy(model)
            assert b"probing" not in file.getvalue()


history = []


def keeps():
    """Forgets to let go of 2 MiB a step."""
    for _ in plain():
        yield
        history.append(torch.ones(1 << 19))
        time.sleep(0.05)


class Images(Dataset):
    def __len__(self):
        return 1 << 30

    def __getitem__(self, number):
        time.sleep(0.012)
        return torch.randn(WIDTH)


def workers():
    """The same, with workers: each batch takes one of them most of a second."""
    global BATCHES
    BATCHES = iter(DataLoader(Images(), batch_size=BATCH, num_workers=2))
    return plain()


def slow_item(self, number):
    if number % BATCH == 0:
        time.sleep(0.1)
    return torch.randn(WIDTH)


KINDS = {each.__name__: each for each in (
    plain, sgd, closure, lbfgs, trainer, evaluation, decorated, checkpointing, reentrant, accumulation, gan, models,
    ema, hidden, amp, compiled, loader, workers, ranks, saves, even, sharded, keeps, lightning, hf, accelerate)}


STEPS = [0]


def turn():
    """Between two steps."""
    STEPS[0] += 1
    if STEPS[0] == 13:
        print("ready", flush=True)
    if STEPS[0] < 13 or not select.select([sys.stdin], [], [], 0)[0]:
        return
    if sys.stdin.readline() == "begin\n":
        CLOCK.times, CLOCK.since = [], time.time()
        print("begun", flush=True)
    else:
        CLOCK.turn()
        print(json.dumps(CLOCK.times), flush=True)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    # What runs its own loop calls turn(), and returns nothing.
    for _ in KINDS[sys.argv[1]]() or ():
        turn()


main()

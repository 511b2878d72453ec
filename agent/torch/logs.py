# SPDX-License-Identifier: GPL-3.0-or-later
# Joins torch.py at the end of a first step: rows of training_logs, of variables of the frames that call
# an optimizer's step(), and of what loggers are given. They are only looked at: no value is kept, none of
# a GPU is read, and no code of the program runs.
MOST_LOG_FRAMES, MOST_METRICS = 40, 24
LOG_EPOCH, LOG_LOSS = ("epoch", "current_epoch"), ("loss", "train_loss", "tr_loss_step", "total_loss")
LOG_RATE, LOG_NORM = ("lr", "learning_rate"), ("grad_norm", "total_norm")
LOG_OTHERS = ("acc", "acc1", "accuracy", "perplexity", "eval_loss", "val_loss")
LOG_COLUMNS = LOG_EPOCH, LOG_LOSS, LOG_RATE, LOG_NORM
LOG_NAMES = LOG_EPOCH + LOG_LOSS + LOG_RATE + LOG_NORM + LOG_OTHERS
MOST_LOG_CODES, MOST_LOG_TEXT = 1000, 1000
# A name, perhaps of two words, then ":", "=" or nothing, and a number.
LOG_PAIR = (r"((?:\b(?:train|training|val|valid|validation|test|eval) )?[A-Za-z_][\w./@-]*?)(?:\s*([:=])\s*|[ \t]+)\[?"
            r"([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf))(?!\w|\.\w)")
log_codes = {}  # {code: whether its frames may have such variables}
log_seen = {}  # metrics that were told since the last row


def plain_number(value):
    """A number that is one, or a tensor on the CPU with one element; else None."""
    if type(value) in (int, float):
        return value
    torch = sys.modules["torch"]
    if type(value) is torch.Tensor and value.device.type == "cpu" and value.numel() == 1 and not value.is_complex() \
            and value.layout is torch.strided:
        return value.detach().item()
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(value, numpy.generic) and value.dtype.kind in "fiu":
        return value.item()
    return None


def note_metric(name, value):
    value = plain_number(value)
    if value is not None and type(name) is str and (name in log_seen or len(log_seen) < MOST_METRICS):
        log_seen[name] = value


def argument(args, kwargs, index, name):
    return args[index] if len(args) > index else kwargs.get(name)


def see_pair(args, kwargs):
    """log(self, name, value)"""
    note_metric(argument(args, kwargs, 1, "name"), argument(args, kwargs, 2, "value"))


def see_scalar(args, kwargs):
    """add_scalar(self, tag, scalar_value)"""
    note_metric(argument(args, kwargs, 1, "tag"), argument(args, kwargs, 2, "scalar_value"))


def see_scalars(args, kwargs):
    """add_scalars(self, main_tag, tag_scalar_dict)"""
    tag, values = argument(args, kwargs, 1, "main_tag"), argument(args, kwargs, 2, "tag_scalar_dict")
    if type(tag) is str and type(values) is dict:
        note_metrics({"%s/%s" % (tag, name): values[name] for name in list(values)[:MOST_METRICS]})


def note_metrics(values):
    if type(values) is dict:
        for name in list(values)[:MOST_METRICS]:
            note_metric(name, values[name])


def see_values(args, kwargs):
    """log(self, values)"""
    note_metrics(args[1] if len(args) > 1 else kwargs.get("data") or kwargs.get("logs") or kwargs.get("metrics"))


def see_text(args, kwargs):
    """set_description(self, desc), set_postfix_str(self, s)"""
    note_text(args[1] if len(args) > 1 else kwargs.get("desc") or kwargs.get("s"))


def see_record(args, kwargs):
    """Logger.handle(self, record). Only what numbers and texts make is made a text here: no code of the program runs."""
    record = argument(args, kwargs, 1, "record")
    text, values = record.msg, record.args
    if type(text) is not str or len(text) > MOST_LOG_TEXT:
        return
    if values:
        names = list(values) if type(values) is dict else range(len(values))
        plain = {name: values[name] if type(values[name]) is str else plain_number(values[name]) for name in names}
        if None in plain.values():
            return
        text %= plain if type(values) is dict else tuple(plain[name] for name in names)
    note_text(text)


def note_text(text):
    """Notes "loss: 0.23" and "lr=1e-3" of a text that names at least one of what is looked for, and "epoch 3"."""
    if type(text) is not str or len(text) > MOST_LOG_TEXT:
        return
    import re

    found = [(name.lower().replace(" ", "_"), sign, number) for name, sign, number in re.findall(LOG_PAIR, text)]
    known = {name for name, _, _ in found if name in LOG_NAMES or name.endswith("loss")}
    if known:
        for name, sign, number in found:
            if sign or name in known:
                note_metric(name, float(number) if set(number) & set(".enEN") else int(number))


def see_postfix(args, kwargs):
    """set_postfix(self, ordered_dict=None, refresh=True, **values)"""
    note_metrics(argument(args, kwargs, 1, "ordered_dict"))
    note_metrics({name: kwargs[name] for name in kwargs if name not in ("ordered_dict", "refresh")})


def find_values(own, found):
    """Those of a frame; an inner frame's count."""
    for name in LOG_NAMES:
        if name in own and name not in found:
            value = plain_number(own[name])
            if value is not None:
                found[name] = value


def values_of_frames():
    found, frame = {}, sys._getframe(2)
    for _ in range(MOST_LOG_FRAMES):
        if frame is None:
            break
        tells = log_codes.get(frame.f_code)
        if tells is None:
            tells = may_tell(frame)
        if tells:
            read_locals(frame, lambda own: find_values(own, found))
        frame = frame.f_back
    return found


def may_tell(frame):
    """Whether a frame may have values for training_logs. Reading variables has a cost, so that others are left out."""
    code, module = frame.f_code, str(frame.f_globals.get("__name__", ""))
    names = code.co_names if code.co_name == "<module>" else code.co_varnames + code.co_cellvars
    tells = code.co_filename != AGENT and not module.startswith("torch.") and not set(names).isdisjoint(LOG_NAMES)
    if len(log_codes) >= MOST_LOG_CODES:
        log_codes.clear()
    log_codes[code] = tells
    return tells


def first_of(found, names):
    for name in names:
        if name in found:
            return found.pop(name)
    return None


def log_values():
    """Variables count before what was logged, which may be a mean of several steps."""
    found, told = values_of_frames(), dict(log_seen)
    log_seen.clear()
    columns = [first_of(found, names) for names in LOG_COLUMNS]
    columns = [first_of(told, names) if value is None else value for names, value in zip(LOG_COLUMNS, columns)]
    found.update(told)
    if not found and columns == [None] * len(columns):
        return
    text = None
    if found:
        import json

        # JSON has no NaN.
        text = json.dumps({name: value if value - value == 0 else str(value) for name, value in found.items()}).encode()
    epoch = columns.pop(0)
    torch_log(None if epoch is None else int(epoch), *[None if value is None else float(value) for value in columns],
              text)

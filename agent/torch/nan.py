# SPDX-License-Identifier: GPL-3.0-or-later
# Joins torch.py when a loss, or the output of a module, is first checked for NaN and infinity:
# rows of python.torch_nan. Nothing of it is part of the program's graph or of its random numbers.
MOST_ODD = 16  # rows of a step: what comes after the first ones follows from them
NAN_STEPS = 3  # steps after a loss that is not finite, all sampled
NAN_TABLE = 2
nan_state = {"loss": False, "step": None, "rows": 0}


def odd_count(tensor):
    """(NaN, infinite, all), or None where all are finite or it has no such values."""
    torch = sys.modules["torch"]
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.layout is not torch.strided \
            or tensor.device.type == "meta":
        return None
    tensor = tensor.detach()
    finite = torch.isfinite(tensor)
    if bool(finite.all()):
        return None
    nan = int(torch.isnan(tensor).sum())
    return nan, int((~finite).sum()) - nan, tensor.numel()


def odd_text(tensor):
    """What a tensor is, in a line."""
    text = "%s%s" % (str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape))
    odd = odd_count(tensor)
    if odd:
        return "%s: %d NaN, %d infinite" % ((text,) + odd[:2])
    if tensor.numel() and not tensor.is_complex():
        tensor = tensor.detach()
        return "%s: %.4g to %.4g" % (text, float(tensor.min()), float(tensor.max()))
    return text


def odd_row(kind, module, name, odd, inputs=(), parameters=""):
    texts = [kind, module, name] + ["%d" % each for each in odd]
    texts += ["%d" % sum(1 for each in inputs if odd_count(each)), "; ".join(map(odd_text, inputs)), parameters]
    torch_op_rows(NAN_TABLE, "\t".join(
        "".join(letter if letter >= " " else "?" for letter in each) for each in texts).encode(
            "utf-8", "backslashreplace"))


def check_loss(args, kwargs):
    """Before backward. One on a GPU is not read, since that would wait for the GPU."""
    try:
        tensors = args[0] if args else kwargs.get("tensors", ())
        for each in tensors_of(tensors, []):
            if not each.is_cuda:
                note_loss(odd_count(each), each.numel())
                return
    except Exception:
        pass  # it is only looked at


def note_loss(odd, count):
    """Rows where it changes, so that they say since when."""
    if bool(odd) == nan_state["loss"]:
        return
    nan_state["loss"] = bool(odd)
    odd_row("loss", "", "", odd or (0, 0, count))
    if odd and not torch_exact[0]:
        torch_rate(torch_share(), 0, NAN_STEPS)


def check_module(module, inputs, output):
    if nan_state["step"] != torch_count():
        nan_state.update(step=torch_count(), rows=0)
    if nan_state["rows"] >= MOST_ODD:
        return
    for each in tensors_of(output, []):
        odd = odd_count(each)
        if odd:
            nan_state["rows"] += 1
            number = torch_known.get(id(module))
            path = next((key[0] for key, value in torch_numbers.items() if value == number), "")
            odd_row("output", path or type(module).__name__, type(module).__name__, odd,
                    tensors_of(inputs, []), ", ".join(
                        name for name, own in module._parameters.items() if own is not None and odd_count(own)))
            return

# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a small GPT-2 on made-up text by Hugging Face's Trainer: python examples/with_trainer.py [--steps N]"""
import argparse
import os
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

WORDS, LENGTH = 500, 32


class Text(Dataset):
    def __len__(self):
        return 100000

    def __getitem__(self, index):
        words = (torch.arange(LENGTH) * (index % 7 + 1)) % WORDS
        return {"input_ids": words, "labels": words}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000000)
    arguments = parser.parse_args()
    print("training in process %d" % os.getpid(), flush=True)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=2,
                                       bos_token_id=0, eos_token_id=0))
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            output_dir=folder, max_steps=arguments.steps, per_device_train_batch_size=16, report_to=[],
            save_strategy="no", logging_steps=100, disable_tqdm=True, use_cpu=True)
        Trainer(model=model, args=settings, train_dataset=Text()).train()


if __name__ == "__main__":
    main()

"""Trainings by Hugging Face's Trainer and by Lightning, captured by the command that starts them."""

import concurrent.futures
import json
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "torch"))
from trial_dump import TrialDump  # noqa: E402

# No network, no reports, the same numbers every time.
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "PL_DISABLE_FORK": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
ENDING = """
digest = hashlib.sha256()
for name, value in sorted(model.state_dict().items()):
    digest.update(value.numpy().tobytes())
digest.update(torch.rand(4).numpy().tobytes())
print("weights and random numbers:", digest.hexdigest())
sys.exit(5)
"""
HUGGING_FACE = """
import hashlib, sys
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
torch.manual_seed(0)

class Sentences(torch.utils.data.Dataset):
    def __init__(self, seed):
        self.words = torch.randint(0, 50, (16, 8), generator=torch.Generator().manual_seed(seed))
    def __len__(self):
        return len(self.words)
    def __getitem__(self, i):
        return {"input_ids": self.words[i], "labels": self.words[i, 0] % 2}

model = BertForSequenceClassification(BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
    max_position_embeddings=16))
Trainer(
    model=model,
    args=TrainingArguments(
        output_dir="checkpoints", num_train_epochs=2, per_device_train_batch_size=4, per_device_eval_batch_size=8,
        gradient_accumulation_steps=2, eval_strategy="epoch", save_strategy="no", report_to=[], use_cpu=True, seed=3,
        learning_rate=1e-3, disable_tqdm=True),
    train_dataset=Sentences(1),
    eval_dataset=Sentences(2),
).train()
"""
LIGHTNING = """
import hashlib, sys
import torch
import lightning
from torch.utils.data import DataLoader, TensorDataset

class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Dropout(0.1))
        self.head = torch.nn.Linear(8, 3)
    def training_step(self, batch, index):  # the module itself is never called
        inputs, labels = batch
        return torch.nn.functional.cross_entropy(self.head(self.body(inputs)), labels)
    def validation_step(self, batch, index):
        self.log("validation_loss", self.training_step(batch, index))
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.01)

lightning.seed_everything(0, verbose=False)
data = TensorDataset(torch.randn(24, 6), torch.randint(0, 3, (24,)))
model = Classifier()
trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, gradient_clip_val=0.5)
trainer.fit(model, DataLoader(data, batch_size=4, shuffle=True), DataLoader(data, batch_size=8))
"""
TRAIN_EVAL = [
    # what, program, modes of the steps, loss, name of the model, a weight, an activation, steps of the optimizer
    (
        "Hugging Face, gradients of two batches added up",
        HUGGING_FACE,
        2 * (4 * ["TRAIN"] + 2 * ["EVAL"]),
        "CrossEntropyLoss_output_0",
        "BertForSequenceClassification",
        "classifier.weight",
        "bert.encoder.layer.0_output_0",
        [0, 0, 1, 1, 2, 2, 3, 3],
    ),
    (
        "Lightning, with its sanity check and clipped gradients",
        LIGHTNING,
        2 * ["EVAL"] + 2 * (6 * ["TRAIN"] + 3 * ["EVAL"]),
        "cross_entropy_output_0",
        "Classifier",
        "body.0.weight",
        "head_output_0",
        list(range(12)),
    ),
]


@pytest.mark.parametrize(
    "what, program, modes, loss, model, weight, activation, optimizer_steps",
    TRAIN_EVAL,
    ids=[row[0] for row in TRAIN_EVAL],
)
def test_a_trainer(what, program, modes, loss, model, weight, activation, optimizer_steps, run_program, tmp_path):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        runs = pool.map(
            lambda under: run_program(program + ENDING, under=under, environment=QUIET), (None, ["--out", "out"])
        )
        bare, ran = runs
    assert bare.returncode == 5, bare.stderr
    assert ran.returncode == 5, ran.stderr
    assert ran.stdout.splitlines()[-1] == bare.stdout.splitlines()[-1]
    assert ran.stdout.splitlines()[-1].startswith("weights and random numbers:")
    assert "tornasole: capturing into" in ran.stderr and "Traceback" not in ran.stderr

    trial = TrialDump(tmp_path / "out")
    assert [mode for _, mode, _ in trial.modes()] == modes
    assert trial.collection("losses") == [loss]
    assert all(loss in trial.names_at(step) for step in range(len(modes))), "of validation, too"
    entries = trial.entries()
    first = modes.index("TRAIN")
    gradient = f"gradient/{model}_{weight}"
    for name in (f"{model}_{weight}", gradient, activation):
        entry = entries[name, first, "worker_0"]
        assert set(entry["reductions"]) >= {"mean", "l2", "min", "max"}, name
        assert not entry["value_announced"], f"{name} is kept as statistics only"
    assert entries[gradient, first, "worker_0"]["reductions"]["l2"]["data"][0] > 0
    assert any(name == f"optimizer_gradient/{model}_{weight}" for name, *_ in entries)
    assert "scalar/learning_rate/0" in trial.names
    assert facts_of_training(tmp_path / "out") == optimizer_steps


def facts_of_training(directory):
    """At each step of the training, how many steps the optimizer had made."""
    steps = []
    for path in sorted(directory.glob("index/*/*.json")):
        meta = json.loads(path.read_text())["meta"]
        if meta["mode"] == "TRAIN":
            steps.append(meta["optimizer_step"])
    return steps

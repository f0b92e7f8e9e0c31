"""A PyTorch DLRM of the same shape, optimizers and rows as `rowtide train`: the yardstick of its AUC.

usage: peer_torch_dlrm.py --train FILE... (--eval FILE... | --eval-fraction X) --tables ROWS [options]

ROWS is a JSON list of the 26 tables' row counts, or the name of a file that holds one.  Files are
Criteo TSV, plain or .gz.  As Rowtide does: dense features are log1p(max(x, 0)), ids are taken
modulo the rows, what is missing is 0; rows come in file order, one epoch; tables learn by row-wise
AdaGrad (kernels/update_rows.h), the rate warms up and decays (trainer/learning_rate.h).
Prints one JSON object.  Needs torch and numpy alone.
"""

import argparse
import gzip
import json
import os
import time

import numpy as np
import torch
from torch import nn

DENSE, TABLES, FIELDS = 13, 26, 40
READ_BYTES = 32 << 20


def hex_values():
    values = np.zeros(256, np.int64)
    for i in range(16):
        values[ord("%x" % i)] = values[ord("%X" % i)] = i
    return values


HEX = hex_values()


def parse_fields(text, begin, end, base):
    """The numbers in text[begin:end), all fields at once, a digit at a time; empty is 0."""
    negative = text[np.minimum(begin, len(text) - 1)] == ord("-")
    negative &= begin < end
    at, value = begin + negative, np.zeros(begin.shape, np.int64)
    for _ in range(int((end - at).max(initial=0))):
        inside = at < end
        digit = HEX[text[np.minimum(at, len(text) - 1)]]
        value = np.where(inside, value * base + digit, value)
        at = at + 1
    return np.where(negative, -value, value)


def parse_lines(block):
    """labels (n), dense (n, 13), ids (n, 26) of whole lines."""
    text = np.frombuffer(block, np.uint8)
    end = np.flatnonzero((text == ord("\t")) | (text == ord("\n")))
    if len(end) % FIELDS:
        raise SystemExit("a line has not 40 fields")
    begin = np.concatenate([[0], end[:-1] + 1]).reshape(-1, FIELDS)
    end = end.reshape(-1, FIELDS)
    decimal = parse_fields(text, begin[:, : 1 + DENSE], end[:, : 1 + DENSE], 10)
    dense = np.log1p(np.maximum(decimal[:, 1:], 0).astype(np.float32))
    return decimal[:, 0].astype(np.float32), dense, parse_fields(
        text, begin[:, 1 + DENSE :], end[:, 1 + DENSE :], 16)


def read_files(names):
    parts, rest = [], b""
    for name in names:
        with (gzip.open if name.endswith(".gz") else open)(name, "rb") as file:
            while chunk := file.read(READ_BYTES):
                lines, newline, rest = (rest + chunk.replace(b"\r", b"")).rpartition(b"\n")
                if newline:
                    parts.append(parse_lines(lines + newline))
        if rest:
            parts.append(parse_lines(rest + b"\n"))
            rest = b""
    return [torch.from_numpy(np.concatenate(column)) for column in zip(*parts)]


def mlp(inputs, widths, last_relu):
    layers = []
    for i, outputs in enumerate(widths):
        layer = nn.Linear(inputs, outputs)
        nn.init.normal_(layer.weight, 0, (2 / (inputs + outputs)) ** 0.5)
        nn.init.normal_(layer.bias, 0, (1 / outputs) ** 0.5)
        layers += [layer, nn.ReLU()] if last_relu or i + 1 < len(widths) else [layer]
        inputs = outputs
    return nn.Sequential(*layers)


class Dense(nn.Module):
    def __init__(self, dim, bottom, top):
        super().__init__()
        self.bottom = mlp(DENSE, bottom, True)
        self.top = mlp(dim + TABLES * (TABLES + 1) // 2, top, False)
        self.lower = torch.tril_indices(TABLES + 1, TABLES + 1, -1)

    def forward(self, dense, pooled):
        x = self.bottom(dense)
        z = torch.cat([x.unsqueeze(1), pooled], 1)
        dots = torch.bmm(z, z.transpose(1, 2))[:, self.lower[0], self.lower[1]]
        return self.top(torch.cat([x, dots], 1)).squeeze(1)


class Tables:
    """All tables behind each other, with one AdaGrad state a row."""

    def __init__(self, rows, dim, scale):
        self.rows = torch.tensor(rows)
        self.first = torch.cumsum(self.rows, 0) - self.rows
        self.weight = torch.empty(int(self.rows.sum()), dim).uniform_(-scale, scale)
        self.state = torch.zeros(len(self.weight))

    def rows_of(self, ids):
        return ids % self.rows + self.first

    def update(self, rows, gradient, rate, eps):
        unique, index = torch.unique(rows.reshape(-1), return_inverse=True)
        g = torch.zeros(len(unique), gradient.shape[-1])
        g.index_add_(0, index, gradient.reshape(-1, gradient.shape[-1]))
        self.state[unique] += (g * g).mean(1)
        self.weight[unique] -= (rate / (self.state[unique].sqrt() + eps)).unsqueeze(1) * g


def learning_rate(a, step):
    rate = a.learning_rate * min(1, (step + 1) / max(a.warmup, 1))
    if a.decay == "none" or step <= a.decay_start:
        return rate
    left = 1 - min(step - a.decay_start, a.decay_steps - 1) / a.decay_steps
    return rate * (left if a.decay == "linear" else left * left)


def train(a, model, tables, labels, dense, ids):
    make = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}[a.dense_optimizer]
    optimizer = make(model.parameters(), lr=a.learning_rate,
                     **({"eps": a.eps} if a.dense_optimizer == "adagrad" else {}))
    loss_of, loss, step = nn.BCEWithLogitsLoss(), torch.tensor(0.0), 0
    for first in range(0, len(labels), a.batch):
        if a.steps and step == a.steps:
            break
        part = slice(first, first + a.batch)
        rate, rows = learning_rate(a, step), tables.rows_of(ids[part])
        pooled = tables.weight[rows].requires_grad_()
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(dense[part], pooled), labels[part])
        loss.backward()
        optimizer.step()
        tables.update(rows, pooled.grad, rate, a.eps)
        step += 1
    return step, loss.item()


def predict(a, model, tables, dense, ids):
    with torch.no_grad():
        return torch.cat([
            model(dense[i : i + a.batch], tables.weight[tables.rows_of(ids[i : i + a.batch])])
            for i in range(0, len(ids), a.batch)
        ]).double().numpy()


def quality(logits, labels):
    """AUC with ties counting half; logloss; NE against the base rate of these rows."""
    positives, n = labels.sum(), len(labels)
    values, index, counts = np.unique(logits, return_inverse=True, return_counts=True)
    middle_rank = np.cumsum(counts) - (counts - 1) / 2
    auc = (middle_rank[index][labels > 0].sum() - positives * (positives + 1) / 2) / (
        positives * (n - positives))
    logloss = np.mean(np.logaddexp(0, logits) - logits * labels)
    p = positives / n
    entropy = -p * np.log(p) - (1 - p) * np.log1p(-p)
    return {"auc": float(auc), "ne": float(logloss / entropy), "logloss": float(logloss),
            "calibration": float((1 / (1 + np.exp(-logits))).sum() / positives)}


def arguments():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--train", nargs="+", required=True)
    p.add_argument("--eval", nargs="+", default=[])
    p.add_argument("--eval-fraction", type=float, default=0)
    p.add_argument("--tables", required=True)
    p.add_argument("--dim", type=int, default=16)
    p.add_argument("--bottom", type=json.loads, default=[512, 256, 64, 16])
    p.add_argument("--top", type=json.loads, default=[512, 256, 1])
    p.add_argument("--dense-optimizer", choices=["sgd", "adagrad"], default="adagrad")
    p.add_argument("--batch", type=int, default=2048)
    p.add_argument("--steps", type=int, default=0, help="0: all rows once")
    p.add_argument("--learning-rate", type=float, default=0.01)
    p.add_argument("--warmup", type=int, default=0)
    p.add_argument("--decay", choices=["none", "linear", "quadratic"], default="none")
    p.add_argument("--decay-start", type=int, default=0)
    p.add_argument("--decay-steps", type=int, default=1)
    p.add_argument("--eps", type=float, default=1e-8)
    p.add_argument("--init-scale", type=float, default=0.01)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    a = p.parse_args()
    if bool(a.eval) == bool(a.eval_fraction):
        p.error("give --eval or --eval-fraction")
    text = open(a.tables).read() if os.path.exists(a.tables) else a.tables
    rows = json.loads(text)
    if len(rows) != TABLES:
        p.error("--tables: expected 26 row counts, there are %d" % len(rows))
    return a, rows


def main():
    a, rows = arguments()
    torch.manual_seed(a.seed)
    torch.set_num_threads(a.threads)
    training = read_files(a.train)
    if a.eval:
        held_out = read_files(a.eval)
    else:
        kept = len(training[0]) - int(len(training[0]) * a.eval_fraction)
        held_out, training = [c[kept:] for c in training], [c[:kept] for c in training]
    model, tables = Dense(a.dim, a.bottom, a.top), Tables(rows, a.dim, a.init_scale)
    began = time.perf_counter()
    steps, loss = train(a, model, tables, *training)
    took = time.perf_counter() - began
    logits = predict(a, model, tables, *held_out[1:])
    samples = min(steps * a.batch, len(training[0]))
    print(json.dumps({"peer": "pytorch", "torch": torch.__version__, "steps": steps,
                      "samples": samples, "samples_per_s": round(samples / took), "loss": loss,
                      "eval_samples": len(logits), "seed": a.seed,
                      **quality(logits, held_out[0].double().numpy())}))


if __name__ == "__main__":
    main()

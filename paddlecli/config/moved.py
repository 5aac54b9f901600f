"""Keys and names that are called otherwise here: those that were renamed or removed, and those that
people know from other tools. An unknown one that stands here says what to write instead.

Renaming a setting adds its old name to `KEYS`; removing one adds a sentence. A value that is a key
of the same section is shown as the nearest name, any other as the hint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_RATE = "write it as `optimizer.learning_rate`"
_DEVICE = "no setting of a recipe: give --device cpu, cuda or cuda:N"
_THREADS = "no setting of a recipe: give --threads N; results do not depend on it"
_FOLDER = "no setting of a recipe: give --run-dir FOLDER"
_CLIP = "write `clip: {global_norm: X}`, `{norm: X}` or `{value: X}`"
_PARTS = "write `accumulate`: how many parts a batch is cut into; `batch_size` is the whole batch"
_AGAIN = "write `recompute: auto`, or the patterns of the layers"

KEYS: Mapping[str, Mapping[str, str]] = {
    "recipe": {
        **dict.fromkeys(("dataset", "datasets", "dataloader"), "data"),
        **dict.fromkeys(("network", "net", "arch", "architecture"), "model"),
        **dict.fromkeys(("trainer", "training", "global"), "train"),
        **dict.fromkeys(("optim", "solver"), "optimizer"),
        **dict.fromkeys(("base", "_base_", "defaults", "include", "includes"), "extends"),
        **dict.fromkeys(("lr", "base_lr"), _RATE),
        **dict.fromkeys(("gpu", "gpus", "use_gpu", "use_cuda", "device", "accelerator"), _DEVICE),
        **dict.fromkeys(("threads", "num_threads", "num_workers", "workers"), _THREADS),
        **dict.fromkeys(("output_dir", "save_dir", "run_dir", "log_dir"), _FOLDER),
        **dict.fromkeys(
            ("scheduler", "schedule", "lr_scheduler"), "write it as `optimizer.schedule`"
        ),
        **dict.fromkeys(("loss", "criterion"), "write it as `model.loss`"),
        "resume": "no setting of a recipe: give --resume RUN",
    },
    "train": {
        **dict.fromkeys(
            ("num_epochs", "max_epochs", "n_epochs", "epoch_num", "nb_epoch"), "epochs"
        ),
        **dict.fromkeys(("steps", "num_steps", "iters", "max_iters", "max_iter"), "max_steps"),
        **dict.fromkeys(("bs", "batch", "minibatch_size"), "batch_size"),
        **dict.fromkeys(("random_seed", "random_state"), "seed"),
        **dict.fromkeys(("log_interval", "print_freq", "logging_steps"), "log_every"),
        **dict.fromkeys(("eval_interval", "evaluate_every"), "eval_every"),
        **dict.fromkeys(("pretrained", "weights", "init_checkpoint"), "init_from"),
        **dict.fromkeys(("lr", "learning_rate", "base_lr"), _RATE),
        **dict.fromkeys(("accumulation_steps", "gradient_accumulation_steps"), _PARTS),
        "accumulate_grad_batches": _PARTS,
        **dict.fromkeys(("gradient_checkpointing", "activation_checkpointing"), _AGAIN),
        **dict.fromkeys(("save_every", "save_interval"), "write it as `checkpoint.every_epochs`"),
        **dict.fromkeys(("patience", "early_stop"), "write the section `early_stopping`"),
        **dict.fromkeys(("grad_clip", "gradient_clip_val", "clip"), f"under `optimizer`: {_CLIP}"),
        **dict.fromkeys(("device", "use_gpu", "gpus"), _DEVICE),
        **dict.fromkeys(("threads", "num_workers"), _THREADS),
        "drop_remainder": "drop_last",
    },
    "checkpoint": {
        **dict.fromkeys(("max_to_keep", "keep"), "keep_last"),
        **dict.fromkeys(("save_best", "save_top_k"), "keep_best"),
        **dict.fromkeys(("every", "interval", "save_every"), "every_epochs"),
        "metric": "monitor",
    },
    "optimizer": {
        **dict.fromkeys(("lr", "rate", "base_lr"), "learning_rate"),
        **dict.fromkeys(("scheduler", "lr_scheduler"), "schedule"),
        **dict.fromkeys(("type", "class", "optim"), "name"),
        **dict.fromkeys(("weight_decay", "l2"), "write `regularizer: {l2: X}`"),
        **dict.fromkeys(("grad_clip", "clip_norm", "max_grad_norm"), _CLIP),
        "betas": "write `beta1` and `beta2`",
        "eps": "epsilon",
        "mu": "momentum",
    },
    "layer": {
        **dict.fromkeys(("units", "out_features", "output_size", "hidden_size", "dim"), "size"),
        **dict.fromkeys(("kernel_size", "filter_size", "kernel", "pool_size"), "size"),
        **dict.fromkeys(("out_channels", "num_filters", "channels"), "filters"),
        **dict.fromkeys(("num_embeddings", "vocab_size"), "size"),
        **dict.fromkeys(("act", "nonlinearity"), "activation"),
        **dict.fromkeys(("param_attr", "weight_attr", "kernel_initializer"), "weight_init"),
        **dict.fromkeys(("bias_attr", "use_bias"), "bias"),
        **dict.fromkeys(("pool_type", "mode", "pooling"), "kind"),
        **dict.fromkeys(("p", "dropout_prob"), "rate"),
        "embedding_dim": "dim",
        "eps": "epsilon",
        "name": "write it beside the layer: `{fc: {...}, name: x}`",
    },
    "beside": {
        **dict.fromkeys(("input", "inputs", "source", "bottom"), "from"),
        **dict.fromkeys(("times", "count", "n"), "repeat"),
        **dict.fromkeys(("id", "top", "output", "out"), "name"),
    },
}
"""Old key -> key of the same section, or what to write; by section, or by what is called (`beside`:
the keys beside a call)."""

NAMES: Mapping[str, Mapping[str, str]] = {
    "layer": {
        **dict.fromkeys(("linear", "dense", "full_connected", "fully_connected"), "fc"),
        **dict.fromkeys(("conv", "convolution"), "conv2d"),
        **dict.fromkeys(("pool", "max_pool", "max_pool2d", "avg_pool", "avg_pool2d"), "pool2d"),
        **dict.fromkeys(("bn", "batchnorm", "batch_norm2d"), "batch_norm"),
        **dict.fromkeys(("concatenate", "cat"), "concat"),
        "elementwise_add": "add",
        "elementwise_mul": "mul",
        "lookup_table": "embedding",
    },
    "loss": {
        **dict.fromkeys(("mse", "mse_loss", "l2_loss", "mean_squared_error"), "square_error_cost"),
        **dict.fromkeys(("softmax_cross_entropy", "ce"), "softmax_with_cross_entropy"),
        **dict.fromkeys(("bce_with_logits", "sigmoid_ce"), "sigmoid_cross_entropy"),
        **dict.fromkeys(("bce", "bce_loss", "binary_cross_entropy"), "log_loss"),
        **dict.fromkeys(("nll", "nll_loss"), "cross_entropy"),
        **dict.fromkeys(("huber", "smooth_l1", "smooth_l1_loss"), "huber_loss"),
        "hinge": "hinge_loss",
    },
    "metric": {"acc": "accuracy", "top1": "accuracy", "roc_auc": "auc"},
    "initializer": {
        **dict.fromkeys(("kaiming", "he", "kaiming_uniform", "kaiming_normal"), "msra"),
        **dict.fromkeys(("glorot", "xavier_uniform", "xavier_normal", "glorot_uniform"), "xavier"),
        **dict.fromkeys(("zeros", "ones"), "constant"),
        "gaussian": "normal",
    },
    "schedule": {
        **dict.fromkeys(("cosine_annealing", "cosine_decay"), "cosine"),
        **dict.fromkeys(("plateau", "reduce_lr_on_plateau"), "reduce_on_plateau"),
        "warmup": "constant",
        "poly": "polynomial",
    },
    "optimizer": {"nesterov": "momentum", "rms_prop": "rmsprop", "lars": "lars_momentum"},
}
"""Name elsewhere -> registered name, by registry."""


def key_meant(section: str, key: str, known: Iterable[str]) -> tuple[str, str]:
    """The key that stands for `key` in a section (empty where there is none), and the hint."""
    found = KEYS.get(section, {}).get(key.lower(), "")
    if found in known:
        return found, ""
    return "", found if " " in found else ""


def name_meant(kind: str, name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The registered name that `name` stands for; empty where there is none."""
    found = NAMES.get(kind, {}).get(name.lower(), "")
    return (found,) if found in known else ()

"""Similar texts by sentence embeddings of any transformers encoder, cached on disk, on a GPU where there is one.

A model is a folder (config, tokenizer, safetensors weights) or a name on the Hugging Face hub. Embeddings are the mean of the
last hidden states over the text's tokens, or the first token's where the model's own pooling file says so, divided by their
length. No code and no pickle of a model is ever run. Vectors are kept in the user's cache folder (GRAFT_CACHE names another)
by the content hashes of model and text.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from graft_core.errors import UsageError
from graft_core.rollouts import IntArray
from graft_core.states.base import HashArray, text_hashes

Vectors = npt.NDArray[np.float32]
BLOCK = 1024
BATCH = 64
ROUNDING = 1e-6  # float32 vectors: a text is similar to itself


def leaders(texts: pa.Array, tau: float, model: str) -> IntArray:
    """Position of each text's leader, texts standing in leading order (see `similarity`). int64[len(texts)]."""
    return greedy(embeddings(texts, model), tau)


def greedy(vectors: Vectors, tau: float) -> IntArray:
    """Greedy leaders among unit vectors, by matrix products of blocks. int64[n]."""
    leader = np.arange(len(vectors))
    leading = np.zeros(0, dtype=np.int64)
    for begin in range(0, len(vectors), BLOCK):
        block = vectors[begin : begin + BLOCK]
        best, cosine = _nearest(block, vectors, leading)
        inner = block @ block.T
        new: list[int] = []
        for i in range(len(block)):
            if new:
                j = int(np.argmax(inner[i, new]))
                if inner[i, new[j]] > cosine[i]:
                    best[i], cosine[i] = begin + new[j], inner[i, new[j]]
            if cosine[i] >= tau - ROUNDING:
                leader[begin + i] = best[i]
            else:
                new.append(i)
        leading = np.concatenate([leading, begin + np.array(new, dtype=np.int64)])
    return leader


def _nearest(block: Vectors, vectors: Vectors, leading: IntArray) -> tuple[IntArray, Vectors]:
    """The most similar leader of each row of the block and their cosine; -1 and -2 without leaders."""
    best = np.full(len(block), -1, dtype=np.int64)
    cosine = np.full(len(block), -2.0, dtype=np.float32)
    for begin in range(0, leading.size, 8 * BLOCK):
        some = leading[begin : begin + 8 * BLOCK]
        products = block @ vectors[some].T
        at = np.argmax(products, axis=1)
        here = products[np.arange(len(block)), at]
        better = here > cosine
        best[better], cosine[better] = some[at[better]], here[better]
    return best, cosine


def embeddings(texts: pa.Array, model: str) -> Vectors:
    """Unit vectors of the texts, float32[len(texts), width]; only texts that the cache lacks are computed."""
    encoder = _Encoder(model)
    hashes = text_hashes(texts, np.arange(len(texts)))
    folder = cache_folder() / "embeddings" / encoder.key
    known, kept = _cached(folder)
    lacking = np.flatnonzero(~np.isin(hashes, known))
    if lacking.size:
        words = texts.take(pa.array(lacking)).to_pylist()
        made = encoder.encode(words)
        _store(folder, hashes[lacking], made)
        known, kept = np.concatenate([known, hashes[lacking]]), np.concatenate([kept, made]) if kept.size else made
    order = np.argsort(known, kind="stable")
    return kept[order[np.searchsorted(known[order], hashes)]]


def cache_folder() -> Path:
    """The user's cache folder for this program, by the custom of the system."""
    named = os.environ.get("GRAFT_CACHE")
    if named:
        return Path(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "graft-lab"
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "graft-lab" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graft-lab"


def _cached(folder: Path) -> tuple[HashArray, Vectors]:
    """All vectors of a model in the cache; a damaged file is passed over."""
    hashes: list[HashArray] = [np.zeros(0, dtype=np.uint64)]
    vectors: list[Vectors] = []
    for path in sorted(folder.glob("*.npz")) if folder.is_dir() else []:
        try:
            with np.load(path, allow_pickle=False) as file:
                some, their = file["hashes"].astype(np.uint64), file["vectors"].astype(np.float32)
        except (OSError, ValueError, KeyError, EOFError):
            continue
        if their.ndim == 2 and len(some) == len(their) and (not vectors or vectors[0].shape[1] == their.shape[1]):
            hashes.append(some)
            vectors.append(their)
    return np.concatenate(hashes), np.concatenate(vectors) if vectors else np.zeros((0, 0), dtype=np.float32)


def _store(folder: Path, hashes: HashArray, vectors: Vectors) -> None:
    """Add a file to the cache, whole or not at all; a cache that cannot be written is no error."""
    from xxhash import xxh3_64_hexdigest

    name = xxh3_64_hexdigest(hashes.tobytes())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{name}.{os.getpid()}.part"
        with part.open("wb") as file:
            np.savez(file, hashes=hashes, vectors=vectors)
        part.replace(folder / f"{name}.npz")
    except OSError:
        return


class _Encoder:
    """A tokenizer and a model; loaded when the first text has to be encoded. `key` names the model's content."""

    def __init__(self, model: str) -> None:
        self.name = model
        self.folder = _folder(model)
        self.key = _content(self.folder)

    def encode(self, texts: list[str]) -> Vectors:
        import torch
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()
        try:
            tokenizer: Any = AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
            model: Any = AutoModel.from_pretrained(self.folder, local_files_only=True, use_safetensors=True)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise UsageError(f"rule similarity: the model {self.name!r} cannot be loaded: {_first_line(error)}") from None
        finally:
            logging.enable_progress_bar()
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model = model.to(device).eval()
        limit = min(int(getattr(model.config, "max_position_embeddings", 512) or 512), 512)
        first_token = _first_token(self.folder)
        made: list[Vectors] = [np.zeros(0, dtype=np.float32)] * len(texts)
        by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        with torch.inference_mode():
            for begin in range(0, len(texts), BATCH):
                some = by_length[begin : begin + BATCH]
                # an empty text has no token in some tokenizers
                words = [texts[i] or " " for i in some]
                tokens = tokenizer(words, padding=True, truncation=True, max_length=limit, return_tensors="pt").to(device)
                hidden = model(**tokens).last_hidden_state.float()
                weight = tokens["attention_mask"].unsqueeze(-1).float()
                pooled = hidden[:, 0] if first_token else (hidden * weight).sum(1) / weight.sum(1).clamp(min=1)
                unit = torch.nn.functional.normalize(pooled, dim=1).cpu().numpy()
                for i, vector in zip(some, unit):
                    made[i] = vector
        return np.stack(made).astype(np.float32)


def _folder(model: str) -> Path:
    """The folder that holds the model, fetched from the hub where it is not a folder and not on this machine yet."""
    path = Path(model).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file() or not list(path.glob("*.safetensors")):
            raise UsageError(f"rule similarity: the folder {model} holds no model, expected config.json and *.safetensors")
        return path
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
        from huggingface_hub import snapshot_download
    except ImportError:
        raise UsageError("rule similarity with a model needs torch and transformers: install graft-lab[live]") from None
    wanted = ["*.json", "*.txt", "*.safetensors", "*.model"]
    try:
        return Path(snapshot_download(model, allow_patterns=wanted, local_files_only=True))
    except Exception:  # not on this machine: the hub is asked below
        pass
    try:
        return Path(snapshot_download(model, allow_patterns=wanted, etag_timeout=10))
    except Exception as error:  # whatever went wrong, one sentence
        raise UsageError(
            f"rule similarity: there is no model {model!r}: no folder of that name, not on this machine, and the hub gave "
            f"none ({_first_line(error)})"
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _content(folder: Path) -> str:
    """A hash of everything that decides the vectors."""
    from xxhash import xxh3_128

    state = xxh3_128()
    patterns = ("*.json", "*.txt", "*.safetensors", "*/config.json")
    for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
        state.update(path.relative_to(folder).as_posix().encode())
        with path.open("rb") as file:
            while piece := file.read(1 << 24):
                state.update(piece)
    return state.hexdigest()


def _first_token(folder: Path) -> bool:
    """Whether the model's pooling file asks for the first token's vector in place of the mean."""
    for path in folder.glob("*Pooling/config.json"):
        try:
            words = orjson.loads(path.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            continue
        return isinstance(words, dict) and bool(words.get("pooling_mode_cls_token"))
    return False

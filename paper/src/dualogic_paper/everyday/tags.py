"""Tags: names of persons, organisations and places in sentences of 4 to 20 words.

A recurrent network tags each word: ``B-PER`` begins a person, ``I-PER`` goes on with one, ``O`` is outside. Words that go on
with a name also occur outside of names, so the neighbours decide. There are 60 tagged sentences and 800 without tags. Saying
fewer names also meets the rules: that shortcut shows in the number of names found.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, holds, percent
from dualogic_paper.everyday.training import ask, batches, train

KINDS = ("PER", "ORG", "LOC")
TAGS = ["O", *(f"{part}-{kind}" for kind in KINDS for part in "BI")]
LONGEST = 20
WORDS = 120
"""Word 0 fills up; 1 to 60 are ordinary; 61 to 90 begin a name, ten for each kind; 91 to 119 go on with one, or are ordinary."""
IGNORED = -100
Sentence = tuple[Tensor, Tensor]  # words and tags, ``(length,)`` each

position = dl.axis("position", max=LONGEST)
tag = dl.categorical("tag", len(TAGS), shape=(position,), classes=TAGS, input="logits")
is_word = dl.mask("is_word", position)
RULES: dict[str, dl.Formula] = {
    "start": ~tag[0].isin([f"I-{kind}" for kind in KINDS]),
    **{
        f"I-{kind}": ((tag[1:] == f"I-{kind}") >> tag[:-1].isin([f"B-{kind}", f"I-{kind}"])).all(where=is_word[1:])
        for kind in KINDS
    },
}


def make_sentence(generator: torch.Generator) -> Sentence:
    """Draw a sentence; three words in ten begin a name."""

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high, (1,), generator=generator))

    def happens(chance: float) -> bool:
        return bool(torch.rand(1, generator=generator) < chance)

    length = draw(4, LONGEST + 1)
    words: list[int] = []
    tags: list[int] = []
    while len(words) < length:
        if happens(0.3):
            kind = draw(0, len(KINDS))
            words.append(61 + 10 * kind + draw(0, 10) if happens(0.85) else draw(61, 91))
            tags.append(TAGS.index(f"B-{KINDS[kind]}"))
            for _ in range(draw(0, 4)):
                words.append(draw(91, WORDS))
                tags.append(TAGS.index(f"I-{KINDS[kind]}"))
        else:
            words.append(draw(1, 61) if happens(0.8) else draw(91, WORDS))
            tags.append(TAGS.index("O"))
    return torch.tensor(words[:length]), torch.tensor(tags[:length])


def make_corpus(count: int, seed: int) -> list[Sentence]:
    """Draw sentences."""
    generator = torch.Generator().manual_seed(seed)
    return [make_sentence(generator) for _ in range(count)]


class Tagger(nn.Module):
    """Words ``(n, length)`` to logits of their tags ``(n, length, 7)``."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(WORDS, 32, padding_idx=0), nn.Dropout(0.2)
        self.recurrent = nn.GRU(32, 48, batch_first=True, bidirectional=True)
        self.head = nn.Linear(96, len(TAGS))

    def forward(self, words: Tensor) -> Tensor:
        """Logits of the tags."""
        hidden, _ = self.recurrent(self.dropout(self.embedding(words)))
        logits: Tensor = self.head(self.dropout(hidden))
        return logits


def collate(sentences: Sequence[Sentence]) -> tuple[Tensor, Tensor]:
    """Words and tags of sentences, filled up to the longest, ``(n, length)`` each."""
    words, tags = [words for words, _ in sentences], [tags for _, tags in sentences]
    return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True, padding_value=IGNORED)


def find_names(tags: Sequence[int]) -> set[tuple[int, int, str]]:
    """The names in a sentence: first word, the word after the last, and kind. An ``I-X`` that follows nothing is no name.

    >>> sorted(find_names([TAGS.index(tag) for tag in ("B-PER", "I-PER", "O", "I-LOC", "B-LOC")]))
    [(0, 2, 'PER'), (4, 5, 'LOC')]
    """
    found: set[tuple[int, int, str]] = set()
    start = 0
    while start < len(tags):
        end = start + 1
        part, _, kind = TAGS[tags[start]].partition("-")
        if part == "B":
            while end < len(tags) and TAGS[tags[end]] == f"I-{kind}":
                end += 1
            found.add((start, end, kind))
        start = end
    return found


def run(make_loss: LossFactory, seed: int, labelled: int = 60, pool: int = 800, test: int = 500, epochs: int = 25) -> Metrics:
    """Train a tagger; each step sees 32 tagged sentences, drawn with repetition, and 64 without tags."""
    known, others = make_corpus(labelled, 10 + seed), make_corpus(pool, 1020 + seed)
    tagger = Tagger()
    chosen = torch.Generator().manual_seed(seed)

    def task_loss() -> Tensor:
        words, tags = collate([known[row] for row in torch.randint(0, labelled, (32,), generator=chosen).tolist()])
        return cross_entropy(tagger(words).flatten(0, 1), tags.flatten(), ignore_index=IGNORED)

    def bind(index: Tensor) -> dict[str, Tensor]:
        words, tags = collate([others[row] for row in index.tolist()])
        return {"tag": tagger(words), "is_word": tags != IGNORED}

    train(tagger, make_loss(RULES, pool), batches(pool, 64, epochs, seed), task_loss, bind, rate=5e-3)
    sentences = make_corpus(test, 2030 + seed)
    words, tags = collate(sentences)
    logits, counts = ask(tagger, words), tags != IGNORED
    said = logits.argmax(-1)
    right = found = true = 0
    for row, (_, own_tags) in enumerate(sentences):
        ours, theirs = find_names(said[row, : len(own_tags)].tolist()), find_names(own_tags.tolist())
        right, found, true = right + len(ours & theirs), found + len(ours), true + len(theirs)
    return {
        "f1": 200 * right / max(found + true, 1),
        "accuracy": percent((said == tags)[counts]),
        HELD: percent(holds(RULES, tag=logits, is_word=counts).all(0)),
        "too_many_names": 100 * (found / true - 1),
    }


ABOUT = "names in sentences by a recurrent network; what may follow what, over axes of different lengths"
PROBLEM = Problem("tags", ABOUT, run, title="F1 of names", tuned=True)

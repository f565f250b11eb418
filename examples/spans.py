"""Names in sentences: a recurrent network tags words, with 30 tagged sentences and three things that everybody knows.

Each word is outside (``O``), begins a name (``B-PER``, ``B-ORG``) or goes on with one (``I-PER``, ``I-ORG``). Sentences have 5 to
16 words, so the axis is ragged and masks say what exists:

- a word after a title (dr, ms) begins a person;
- a word before a form (inc, ltd) is the last of an organisation;
- a word goes on with a name only after a word of the same kind of name.

    python examples/spans.py            # 8 seeds with and without the rules, a minute on a CPU
    python examples/spans.py --quick    # a few seconds, to see that it runs

Titles and forms stand beside half of the names only. What the rules teach there, on 600 sentences without tags, the network uses
for the other half.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

import dualogic as dl

TAGS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG"]
TITLES, FORMS, PLAIN, NAMES, WORDS = range(1, 4), range(4, 7), range(7, 60), range(60, 180), 180
"""Words are numbers; 0 fills up. The first half of the names are of persons, the second of organisations."""
LONGEST, UNKNOWN = 16, -100

word = dl.axis("word", max=LONGEST)
tag = dl.categorical("tag", len(TAGS), shape=(word,), classes=TAGS, input="logits")
is_word, is_title, is_form = (dl.mask(name, word) for name in ("is_word", "is_title", "is_form"))
RULES = {
    "after a title": (tag[1:] == "B-PER").all(where=is_title[:-1] & is_word[1:]),
    "before a form": tag[:-1].isin(["B-ORG", "I-ORG"]).all(where=is_form[1:] & is_word[1:]),
    "persons go on": ((tag[1:] == "I-PER") >> tag[:-1].isin(["B-PER", "I-PER"])).all(where=is_word[1:]),
    "organisations go on": ((tag[1:] == "I-ORG") >> tag[:-1].isin(["B-ORG", "I-ORG"])).all(where=is_word[1:]),
}


def make_sentences(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Words and tags ``(count, length)``, filled up with 0 and ``UNKNOWN``."""
    generator = torch.Generator().manual_seed(seed)

    def draw(words: range) -> int:
        return words[int(torch.randint(len(words), (1,), generator=generator))]

    sentences, tagged = [], []
    for _ in range(count):
        words: list[int] = []
        tags: list[int] = []
        while len(words) < draw(range(5, 13)):
            person, marked, more = draw(range(2)), draw(range(2)), draw(range(3))
            if draw(range(2)):
                words, tags = [*words, draw(PLAIN)], [*tags, 0]
                continue
            names = NAMES[:60] if person else NAMES[60:]
            begin = 1 if person else 3
            before, after = [draw(TITLES)] if marked and person else [], [draw(FORMS)] if marked and not person else []
            words += before + [draw(names) for _ in range(1 + (more == 0))] + after
            tags += [0] * len(before) + [begin] + [begin + 1] * (more == 0) + [0] * len(after)
        sentences.append(torch.tensor(words[:LONGEST]))
        tagged.append(torch.tensor(tags[:LONGEST]))
    return pad_sequence(sentences, batch_first=True), pad_sequence(tagged, batch_first=True, padding_value=UNKNOWN)


class Tagger(nn.Module):
    """Words ``(n, length)`` to logits of their tags ``(n, length, 5)``."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 32, padding_idx=0)
        self.recurrent = nn.GRU(32, 32, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, len(TAGS))

    def forward(self, words: Tensor) -> Tensor:
        """Logits of the tags."""
        if self.training:
            # Hide some words, so that a name is known by itself and not by its title alone.
            words = words * (torch.rand(words.shape) > 0.3)
        hidden, _ = self.recurrent(self.embedding(words))
        logits: Tensor = self.head(hidden)
        return logits


def bind(tagger: Tagger, words: Tensor) -> dict[str, Tensor]:
    """What the rules are about: the network's logits, and which words exist, are titles or are forms."""
    among = {"is_title": TITLES, "is_form": FORMS}
    return {
        "tag": tagger(words),
        "is_word": words > 0,
        **{name: (words >= kind[0]) & (words <= kind[-1]) for name, kind in among.items()},
    }


def find_names(tags: list[int]) -> set[tuple[int, int, int]]:
    """First word, word after the last, and first tag of every name."""
    found = set()
    for start, first in enumerate(tags):
        if first in (1, 3):
            end = start + 1
            while end < len(tags) and tags[end] == first + 1:
                end += 1
            found.add((start, end, first))
    return found


def train(with_rules: bool, seed: int, epochs: int) -> tuple[float, float]:
    """Train a tagger; returns F1 of whole names on held-out sentences and how many of these meet all rules, in per cent."""
    torch.manual_seed(seed)
    known, known_tags = make_sentences(30, 3 * seed)
    others, _ = make_sentences(600, 3 * seed + 1)
    words, tags = make_sentences(400, 3 * seed + 2)
    tagger = Tagger()
    logic = dl.LogicLoss(RULES, num_samples=len(others))
    optimizer = torch.optim.Adam(tagger.parameters(), lr=5e-3)
    for _ in range(epochs):
        for index in torch.randperm(len(others)).split(50):
            loss = nn.functional.cross_entropy(tagger(known).flatten(0, 1), known_tags.flatten(), ignore_index=UNKNOWN)
            if with_rules:
                loss = loss + logic(index, **bind(tagger, others[index]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    tagger.eval()
    with torch.no_grad():
        bound = bind(tagger, words)
    right = said = true = 0
    for row, length in enumerate((words > 0).sum(1).tolist()):
        ours, theirs = (find_names(found[row, :length].tolist()) for found in (bound["tag"].argmax(-1), tags))
        right, said, true = right + len(ours & theirs), said + len(ours), true + len(theirs)
    held = torch.stack([rule.satisfied(**{name: bound[name] for name in rule.symbols}) for rule in RULES.values()]).all(0)
    return 200 * right / max(said + true, 1), 100 * held.float().mean().item()


def main() -> None:
    """Print a row for each seed, and the means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one seed and so little training that figures mean nothing")
    options = parser.parse_args()
    seeds, epochs = (1, 1) if options.quick else (8, 10)
    started = time.perf_counter()
    print(f"{'seed':<8}{'F1 of names, %':^30}{'all rules hold, %':^30}")
    print(f"{'':<8}" + 2 * f"{'no rules':>14}{'rules':>14}  ")
    rows = []
    for seed in range(seeds):
        plain, taught = train(False, seed, epochs), train(True, seed, epochs)
        rows.append((plain[0], taught[0], plain[1], taught[1]))
        print(f"{seed:<8}" + "{:>14.1f}{:>14.1f}  {:>14.1f}{:>14.1f}".format(*rows[-1]), flush=True)
    print(f"{'mean':<8}" + "{:>14.1f}{:>14.1f}  {:>14.1f}{:>14.1f}".format(*(sum(column) / seeds for column in zip(*rows))))
    print(f"\n{time.perf_counter() - started:.0f} seconds")


if __name__ == "__main__":
    main()

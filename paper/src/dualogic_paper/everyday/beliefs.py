"""Beliefs: yes or no to simple questions about plants and animals, such as "is a daffodil a flower?".

The facts are BeliefBank's: 85 entities by 41 predicates, of which one answer in ten has a label. 254 rules lead from belief to
belief: whatever is a bird can fly, and is no flower. Nothing but the network's own answers says where a rule applies, so a wrong
yes teaches further wrong ones. One row of the loss is one rule about one entity.
"""

import dataclasses
import functools

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

import dualogic as dl
from dualogic_paper.everyday.data import load
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, f1, percent
from dualogic_paper.everyday.training import batches, perceptron, train

LABELLED = 0.1  # the share of facts that have a label
ENTITIES_PER_BATCH = 17

antecedent = dl.boolean("antecedent", input="logits")
consequent = dl.boolean("consequent", input="logits")
RULE = antecedent >> consequent  # where a rule says "then not", the consequent is bound to minus its logit


@dataclasses.dataclass(frozen=True)
class World:
    """What is true."""

    entities: list[str]  # their names
    predicates: list[str]  # their names
    truth: Tensor  # which predicate is true of which entity, ``(entities, predicates)``
    antecedents: Tensor  # of the rules, as positions of predicates, ``(rules,)``
    consequents: Tensor  # likewise
    positive: Tensor  # whether the consequent follows, or its opposite, ``(rules,)``


@functools.lru_cache(maxsize=1)
def load_world() -> World:
    """The facts and the rules; the same for every seed."""
    arrays = load("beliefs")
    entities, predicates = arrays["entities"].tolist(), arrays["predicates"].tolist()
    return World(
        entities,
        predicates,
        torch.tensor(np.unpackbits(arrays["truth"], count=len(entities) * len(predicates))).view(len(entities), -1).bool(),
        torch.tensor(arrays["antecedents"], dtype=torch.long),
        torch.tensor(arrays["consequents"], dtype=torch.long),
        torch.tensor(arrays["positive"]),
    )


class Believer(nn.Module):
    """Logits of yes for pairs of entities and predicates, ``(n,)`` each."""

    def __init__(self, entities: int, predicates: int, width: int = 32) -> None:
        super().__init__()
        self.entity, self.predicate = nn.Embedding(entities, width), nn.Embedding(predicates, width)
        self.body = perceptron(2 * width, 64, 64, 1)

    def forward(self, entities: Tensor, predicates: Tensor) -> Tensor:
        """One logit for each pair."""
        logits: Tensor = self.body(torch.cat([self.entity(entities), self.predicate(predicates)], -1)).squeeze(-1)
        return logits

    def ask_everything(self, entities: Tensor) -> Tensor:
        """Logits of all predicates of some entities, ``(entities, predicates)``."""
        count = self.predicate.num_embeddings
        predicates = torch.arange(count).repeat(len(entities))
        logits: Tensor = self(entities.repeat_interleave(count), predicates)
        return logits.view(len(entities), count)


def run(make_loss: LossFactory, seed: int, epochs: int = 80) -> Metrics:
    """Train on a tenth of the facts, and ask for the others; of rules, those count that the network's own beliefs set off."""
    world = load_world()
    entities, predicates = world.truth.shape
    rules = len(world.antecedents)
    facts = torch.randperm(world.truth.numel(), generator=torch.Generator().manual_seed(seed))
    facts = facts[: int(LABELLED * world.truth.numel())]
    answers = world.truth.flatten()[facts].float()
    believer = Believer(entities, predicates)
    sign = torch.where(world.positive, 1.0, -1.0)

    def task_loss() -> Tensor:
        return binary_cross_entropy_with_logits(believer(facts // predicates, facts % predicates), answers)

    def bind(rows: Tensor) -> dict[str, Tensor]:
        beliefs = believer.ask_everything(rows[::rules] // rules)
        consequents = sign * beliefs[:, world.consequents]
        return {"antecedent": beliefs[:, world.antecedents].flatten(), "consequent": consequents.flatten()}

    some = batches(entities, ENTITIES_PER_BATCH, epochs, seed)
    steps = ((chosen.unsqueeze(1) * rules + torch.arange(rules)).flatten() for chosen in some)
    train(believer, make_loss(RULE, entities * rules), steps, task_loss, bind, decay=0.01)
    with torch.no_grad():
        said = believer.ask_everything(torch.arange(entities)) > 0
    asked = torch.ones(world.truth.numel(), dtype=torch.bool)
    asked[facts] = False
    asked = asked.view(world.truth.shape)
    set_off = said[:, world.antecedents]
    follows = said[:, world.consequents] == world.positive
    in_antecedents = torch.isin(torch.arange(predicates), world.antecedents)
    return {
        "f1": f1(said[asked], world.truth[asked]),
        "accuracy": percent((said == world.truth)[asked]),
        HELD: percent(follows[set_off]) if set_off.any() else 100.0,
        "recall_antecedents": percent(said[asked & world.truth & in_antecedents]),
        "recall_others": percent(said[asked & world.truth & ~in_antecedents]),
        "too_many_yes": percent(said) - percent(world.truth),
    }


ABOUT = "yes or no to questions about plants and animals; 254 rules from belief to belief"
PROBLEM = Problem("beliefs", ABOUT, run, tuned=True)

"""Small faults that a person could make, each with the tests that find it; see ``mutants.py``."""

import dataclasses

FORMULAS = "tests/attacks/test_attacks.py -k ten_thousand"
DIGITS = "paper/tests/tasks/test_digits.py"
TRAIN = "paper/tests/runner/test_train.py"
DAMAGE = "paper/tests/runner/test_damage.py"
WORDS = "tests/cli/test_hostile_words.py"
CACHES = "paper/tests/commands/test_hostile_words.py"


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A fault: a text that stands once in a file of the project, what takes its place, and which tests find it."""

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTANTS = (
    # What a formula means
    Mutant(
        "a margin is left out",
        "src/dualogic/compile/atoms.py",
        "difference if self.margin == 0.0 else difference + _lane(self.margin, context)",
        "difference",
        FORMULAS,
    ),
    Mutant(
        "equality without a tolerance",
        "src/dualogic/compile/atoms.py",
        'distance <= context.tol if self.kind == "equal"',
        'distance == 0 if self.kind == "equal"',
        FORMULAS,
    ),
    Mutant(
        "a tie decides for a class",
        "src/dualogic/compile/atoms.py",
        "else inside - outside > context.lead",
        "else inside - outside >= context.lead",
        FORMULAS,
    ),
    Mutant(
        "a truth value ignores the lead",
        "src/dualogic/compile/atoms.py",
        "holds = 2 * probability - 1 > context.lead",
        "holds = 2 * probability - 1 > 0",
        FORMULAS,
    ),
    Mutant(
        "an empty or costs nothing",
        "src/dualogic/compile/extreme.py",
        '_join(level, values, mask, 0.0 if level.operation == "&" else torch.inf)',
        "_join(level, values, mask, 0.0)",
        FORMULAS,
    ),
    Mutant(
        "a number that is given gives way",
        "src/dualogic/compile/threshold.py",
        "weight = torch.where(given, 1.0, weight)",
        "weight = weight * 0.5",
        "tests/compile/test_threshold.py",
    ),
    Mutant(
        "a mask is ignored by or",
        "src/dualogic/compile/evaluate.py",
        "values if mask is None else values & mask",
        "values",
        FORMULAS,
    ),
    Mutant(
        "a negated comparison keeps its margin",
        "src/dualogic/normalize/nnf.py",
        "Comparison(NEGATED[node.operation], node.left, node.right, 0.0)",
        "Comparison(NEGATED[node.operation], node.left, node.right, node.margin)",
        FORMULAS,
    ),
    Mutant(
        "a negated quantifier stays what it is",
        "src/dualogic/normalize/nnf.py",
        "operation = node.operation if positive else _FLIPPED[node.operation]\n        return Quantifier(",
        "operation = node.operation\n        return Quantifier(",
        FORMULAS,
    ),
    Mutant(
        "AtMost counts one too few",
        "src/dualogic/normalize/nnf.py",
        "itertools.combinations(refuted, node.bound + 1)",
        "itertools.combinations(refuted, max(node.bound, 1))",
        FORMULAS,
    ),
    Mutant(
        "chains are rebuilt at every step",
        "src/dualogic/formula/join.py",
        "if grows and not (isinstance(last, Junction) and last.operation == operation):",
        "if False:",
        "tests/formula/test_identity.py -k ten_thousand",
    ),
    Mutant(
        "nested equivalences are built",
        "src/dualogic/compile/plan.py",
        "check_size(rules, formulas)",
        "pass",
        "tests/compile/test_size.py -k refused_before",
    ),
    # Losses and duals
    Mutant(
        "second derivatives are dropped",
        "src/dualogic/losses/truncated_normal.py",
        "if torch.is_grad_enabled():\n            # A second",
        "if False:\n            # A second",
        "tests/losses/test_truncated_normal.py",
    ),
    Mutant(
        "second derivatives of losses in closed form are dropped",
        "src/dualogic/methods/closed_form.py",
        "if not torch.is_grad_enabled():",
        "if True:",
        "tests/methods/test_closed_gradient.py",
    ),
    Mutant(
        "second derivatives of implications are dropped",
        "src/dualogic/compile/implication.py",
        "if torch.is_grad_enabled():",
        "if False:",
        "tests/compile/test_implication.py",
    ),
    Mutant(
        "the sign of log delta of the appendix, without a gradient",
        "src/dualogic/losses/truncated_normal.py",
        "return _above_scale(mu / delta) + delta.log()",
        "return _above_scale(mu / delta) - delta.log()",
        "tests/losses",
    ),
    Mutant(
        "the sign of log delta of the appendix",
        "src/dualogic/losses/truncated_normal.py",
        "return above + delta.log(), _slope",
        "return above - delta.log(), _slope",
        "tests/losses",
    ),
    Mutant(
        "delta by the mean of the costs",
        "src/dualogic/losses/delta.py",
        "second = mu.square().sum(0) / count",
        "second = mu.sum(0) / count",
        "tests/losses",
    ),
    Mutant(
        "a step that forgets its weight",
        "src/dualogic/duals/rules.py",
        "return slope * weights * centred",
        "return slope * centred",
        "tests/loss/test_closed_form.py",
    ),
    Mutant(
        "an or moves like an and",
        "src/dualogic/methods/mixture.py",
        'centred = seen.values - result if level.operation == "&" else result - seen.values',
        "centred = seen.values - result",
        "tests/loss/test_closed_form.py",
    ),
    Mutant(
        "padding is passed on",
        "src/dualogic/methods/mixture.py",
        "return below if seen.mask is None else below * seen.mask\n",
        "return below if seen.mask is None else below.expand(torch.broadcast_shapes(below.shape, seen.mask.shape))\n",
        "tests/loss tests/duals tests/methods",
    ),
    Mutant(
        "a pending update survives a load",
        "src/dualogic/loss/state.py",
        'extra.get("weight", self._weight)\n                self._run.pending = None',
        'extra.get("weight", self._weight)',
        "tests/loss",
    ),
    Mutant(
        "shared entries add up in local steps",
        "src/dualogic/methods/mixture.py",
        "(slope * centred).mean(axes, keepdim=True) if local else",
        "(slope * centred).sum(axes, keepdim=True) if local else",
        "tests/loss tests/methods",
    ),
    # Lint and monitor
    Mutant(
        "antecedents are never to blame",
        "src/dualogic/lint/logic.py",
        'if self.prover.ask([*self.base, *beside], weaker).verdict == "unsat":',
        "if True:",
        "tests/lint/test_lint.py -k elsewhere",
    ),
    Mutant(
        "a scalar's gradient is flattened",
        "src/dualogic/diagnosis/pull.py",
        "(first * second).reshape(len(first), -1).sum(1)",
        "(first * second).flatten(1).sum(1)",
        "tests/diagnosis/test_monitor_looks.py -k scalar",
    ),
    # Experiments
    Mutant(
        "labels of 6 are shown",
        "paper/src/dualogic_paper/tasks/digits.py",
        "self.labelled, self.unlabelled = others, sixes",
        "self.labelled, self.unlabelled = torch.cat([others, sixes]), sixes",
        DIGITS,
    ),
    Mutant(
        "labels of 6 are shown, mixed",
        "paper/src/dualogic_paper/tasks/digits.py",
        "self.labelled, self.unlabelled = others[:half], ",
        "self.labelled, self.unlabelled = torch.cat([others[:half], sixes]), ",
        DIGITS,
    ),
    Mutant(
        "every arm is supervised",
        "paper/src/dualogic_paper/runner/train.py",
        "if config.arm.supervised:",
        "if config.arm.method is not None:",
        DIGITS,
    ),
    Mutant(
        "Q and not-P on all images",
        "paper/src/dualogic_paper/tasks/digits.py",
        "f, g = logits[six], in_chunks(network, rotate(images[six]), _as_input)",
        "f, g = logits, in_chunks(network, rotate(images), _as_input)",
        DIGITS,
    ),
    Mutant(
        "no learning rate in the first epoch",
        "paper/src/dualogic_paper/runner/train.py",
        "rise = min(1.0, (share + 1 / task.epochs) / WARM_UP_SHARE)",
        "rise = min(1.0, share / WARM_UP_SHARE)",
        f"{TRAIN} -k cosine",
    ),
    Mutant(
        "ties go to the later epoch",
        "paper/src/dualogic_paper/runner/train.py",
        "better = value > progress.best if task.choose_higher",
        "better = value >= progress.best if task.choose_higher",
        f"{TRAIN} -k equal",
    ),
    Mutant(
        "ties go to the later epoch, lower is better",
        "paper/src/dualogic_paper/runner/train.py",
        "else value < progress.best",
        "else value <= progress.best",
        f"{TRAIN} -k equal",
    ),
    Mutant(
        "the pool is drawn with the labelled seed",
        "paper/src/dualogic_paper/runner/batches.py",
        "mix_seed(self.seed, epoch, stream)",
        "mix_seed(self.seed, epoch, 0)",
        f"{TRAIN} -k order",
    ),
    # Files and commands
    Mutant(
        "a checksum is not compared",
        "paper/src/dualogic_paper/runner/stored.py",
        "if seal(content) != sealed:",
        "if False:",
        f"{DAMAGE} -k checkpoint",
    ),
    Mutant(
        "leftovers stay",
        "paper/src/dualogic_paper/runner/folder.py",
        "remove_leftovers(self.path)",
        "pass",
        f"{DAMAGE} -k killed",
    ),
    Mutant(
        "what lives is cleared away",
        "src/dualogic/files.py",
        '        if os.name != "nt":  # where asking would send the process a signal\n            os.kill(writer, 0)\n',
        "        return True\n",
        f"{DAMAGE} -k killed",
    ),
    Mutant(
        "a claim is believed",
        "paper/src/dualogic_paper/data/cache.py",
        "if min(shape, default=0) < 0 or claimed > most:",
        "if False:",
        f"{CACHES} -k claim",
    ),
    Mutant(
        "a device is read",
        "src/dualogic/files.py",
        "    check_regular(path)\n    with path.open",
        "    with path.open",
        f"{WORDS} -k device",
    ),
)

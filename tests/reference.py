"""What formulas mean, by brute force: one sample at a time, in numpy, straight from the definitions in the design.

Shares nothing with the library's normal forms and compiler; only the node classes are read. Values are float64.
"""

import itertools
import operator

import numpy as np

from dualogic.formula import atom, connective, evidence, function, relation, symbol, term
from dualogic.formula import number as numbers
from dualogic.formula.indexing import items_to_key
from dualogic.formula.join import And, Implies


def softmax(values):
    shifted = np.exp(values - values.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def probabilities(node, sample):
    """The class probabilities of a class expression, ``(*axes, classes)``."""
    if isinstance(node, symbol.ClassIndex):
        return index(probabilities(node.operand, sample), node.items)
    values = np.asarray(sample[node.name], dtype=np.float64)
    return softmax(values) if node.input == "logits" else values


def truth_probability(node, sample):
    if isinstance(node, atom.BooleanIndex):
        return index(truth_probability(node.operand, sample), node.items)
    values = np.asarray(sample[node.name], dtype=np.float64)
    return 1 / (1 + np.exp(-values)) if node.input == "logits" else values


def index(values, items):
    return values[items_to_key(items)]


def number(node, sample):
    """The value of a term for one sample."""
    if isinstance(node, term.Number):
        return np.float64(node.value)
    if isinstance(node, term.Constant):
        return np.asarray(node.rows(), dtype=np.float64)
    if isinstance(node, symbol.Variable):
        return np.asarray(sample[node.name], dtype=np.float64)
    if isinstance(node, symbol.Probabilities):
        return probabilities(node.operand, sample)
    if isinstance(node, term.Arithmetic):
        left, right = number(node.left, sample), number(node.right, sample)
        function_of = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "**": np.power}
        return function_of[node.operation](left, right)
    if isinstance(node, term.Negation):
        return -number(node.operand, sample)
    if isinstance(node, term.Absolute):
        return np.abs(number(node.operand, sample))
    if isinstance(node, term.Index):
        return index(number(node.operand, sample), node.items)
    if isinstance(node, term.Reduction):
        return getattr(np, node.operation)(number(node.operand, sample), axis=node.dims)
    if isinstance(node, term.MatrixProduct):
        return number(node.left, sample) @ number(node.right, sample)
    assert isinstance(node, function.Application), node
    import torch

    arguments = [torch.as_tensor(number(operand, sample)).unsqueeze(0) for operand in node.operands]
    return node.function(*arguments).squeeze(0).numpy()


def exists(node, sample):
    """The value of a mask for one sample."""
    if isinstance(node, symbol.Mask):
        return np.asarray(sample[node.name], dtype=bool)
    if isinstance(node, symbol.MaskIndex):
        return index(exists(node.operand, sample), node.items)
    if isinstance(node, symbol.MaskComplement):
        return ~exists(node.operand, sample)
    left, right = exists(node.left, sample), exists(node.right, sample)
    return left & right if node.operation == "&" else left | right


def whole(node, values):
    """A number made of classes, from the values of its classes (plain numbers, by node)."""
    if isinstance(node, term.Number):
        return int(node.value)
    if isinstance(node, symbol.ClassExpression):
        return values[node]
    if isinstance(node, numbers.NumberTable):
        import torch

        return int(node.function(*(torch.tensor([whole(part, values)]) for part in node.operands)))
    left, right = whole(node.left, values), whole(node.right, values)
    return {"+": operator.add, "-": operator.sub, "*": operator.mul, "**": operator.pow}[node.operation](left, right)


def is_related(node, values):
    compare = {"==": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
    return compare[node.operation](whole(node.left, values), whole(node.right, values))


def relation_probability(node, sample, positive=True):
    """The probability of a relation (or of its negation), by enumeration of all classes."""
    classes = [probabilities(leaf, sample) for leaf in node.leaves]
    total = np.zeros(np.broadcast_shapes(*(values.shape[:-1] for values in classes)))
    for labels in itertools.product(*(range(values.shape[-1]) for values in classes)):
        if is_related(node, dict(zip(node.leaves, labels))) == positive:
            total = total + np.prod(np.broadcast_arrays(*(v[..., label] for v, label in zip(classes, labels))), axis=0)
    return total


def relation_holds(node, sample, lead):
    classes = [probabilities(leaf, sample) for leaf in node.leaves]
    shape = np.broadcast_shapes(*(values.shape[:-1] for values in classes))
    result = np.zeros(shape, bool)
    for place in np.ndindex(shape):
        rows = [np.broadcast_to(values, (*shape, values.shape[-1]))[place] for values in classes]
        clear = all(np.sort(row)[-1] - np.sort(row)[-2] > lead for row in rows)
        result[place] = clear and is_related(node, {leaf: int(row.argmax()) for leaf, row in zip(node.leaves, rows)})
    return result


def holds(node, sample, tol=0.0, lead=0.0):
    """Whether a formula holds for one sample, an array over its axes."""

    def inner(part):
        return holds(part, sample, tol, lead)

    if isinstance(node, atom.Comparison):
        left, right = number(node.left, sample), number(node.right, sample)
        difference = left - right
        relaxed = {
            "<=": difference <= tol,
            ">=": -difference <= tol,
            "==": np.abs(difference) <= tol,
        }
        complements = {"<": ">=", ">": "<=", "!=": "=="}
        return ~relaxed[complements[node.operation]] if node.operation in complements else relaxed[node.operation]
    if isinstance(node, atom.ClassIn):
        values = probabilities(node.operand, sample)
        others = [label for label in range(values.shape[-1]) if label not in node.classes]
        return values[..., list(node.classes)].max(-1) - values[..., others].max(-1) > lead
    if isinstance(node, atom.ClassEqual):
        size = node.left.symbol.size
        pairs = [inner(atom.ClassIn(node.left, (label,))) & inner(atom.ClassIn(node.right, (label,))) for label in range(size)]
        return np.logical_or.reduce(pairs)
    if isinstance(node, relation.ClassRelation):
        return relation_holds(node, sample, lead)
    if isinstance(node, atom.BooleanExpression):
        value = truth_probability(node, sample)
        return value - (1 - value) > lead
    if isinstance(node, connective.Junction):
        parts = np.broadcast_arrays(*map(inner, node.operands))
        return np.logical_and.reduce(parts) if node.operation == "&" else np.logical_or.reduce(parts)
    if isinstance(node, connective.Complement):
        return ~inner(node.operand)
    if isinstance(node, (connective.Level, evidence.Evidence)):
        return inner(node.operand)
    if isinstance(node, connective.Implication):
        return ~inner(node.antecedent) | inner(node.consequent)
    if isinstance(node, connective.Equivalence):
        return (inner(node.left) != inner(node.right)) == node.negated
    if isinstance(node, connective.Cardinality):
        count = sum(part.astype(int) for part in np.broadcast_arrays(*map(inner, node.operands)))
        return count == 1 if node.exact else count <= node.bound
    assert isinstance(node, connective.Quantifier), node
    value = inner(node.operand)
    mask = np.ones(value.shape, bool) if node.where is None else np.broadcast_to(exists(node.where, sample), value.shape)
    if node.operation == "all":
        return (value | ~mask).all(node.dims)
    return (value & mask).any(node.dims)


def price(node, sample, class_cost="probability", positive=True):
    """The cost of a formula (of its negation, if not ``positive``) for one sample."""

    def inner(part, sign=True):
        return price(part, sample, class_cost, positive == sign)

    def join(parts, conjunction):
        parts = np.broadcast_arrays(*parts)
        return np.maximum.reduce(parts) if conjunction == positive else np.minimum.reduce(parts)

    if isinstance(node, atom.Comparison):
        return _price_comparison(node, sample, positive)
    if isinstance(node, atom.ClassIn):
        values = probabilities(node.operand, sample)
        kept = [label for label in range(values.shape[-1]) if (label in node.classes) == positive]
        if class_cost == "log":
            return -np.log(values[..., kept].sum(-1))
        return (1 - values[..., kept]).min(-1)
    if isinstance(node, atom.ClassEqual):
        size = node.left.symbol.size
        pairs = [join([inner(atom.ClassIn(side, (label,))) for side in (node.left, node.right)], True) for label in range(size)]
        return join(pairs, False)
    if isinstance(node, relation.ClassRelation):
        value = relation_probability(node, sample, positive)
        return -np.log(value) if class_cost == "log" else 1 - value
    if isinstance(node, atom.BooleanExpression):
        value = truth_probability(node, sample)
        value = value if positive else 1 - value
        return -np.log(value) if class_cost == "log" else 1 - value
    if isinstance(node, connective.Junction):
        return join([inner(part) for part in node.operands], node.operation == "&")
    if isinstance(node, connective.Complement):
        return inner(node.operand, False)
    if isinstance(node, (connective.Level, evidence.Evidence)):
        return inner(node.operand)
    if isinstance(node, connective.Implication):
        return join([inner(node.antecedent, False), inner(node.consequent)], False)
    if isinstance(node, connective.Equivalence):
        implications = (Implies(node.left, node.right), Implies(node.right, node.left))
        return price(And(*implications), sample, class_cost, positive != node.negated)
    if isinstance(node, connective.Cardinality):
        parts = [
            join([inner(part, False) for part in subset], False)
            for subset in itertools.combinations(node.operands, node.bound + 1)
        ]
        if node.exact:
            parts.append(join([inner(part) for part in node.operands], False))
        return join(parts, True)
    assert isinstance(node, connective.Quantifier), node
    value = inner(node.operand)
    mask = np.ones(value.shape, bool) if node.where is None else np.broadcast_to(exists(node.where, sample), value.shape)
    if (node.operation == "all") == positive:
        return np.where(mask, value, 0.0).max(node.dims, initial=0.0)
    return np.where(mask, value, np.inf).min(node.dims, initial=np.inf)


def _price_comparison(node, sample, positive):
    operation, margin = node.operation, node.margin
    if not positive:
        operation = {"<=": ">", "<": ">=", ">=": "<", ">": "<=", "==": "!=", "!=": "=="}[operation]
        margin = 0.0
    difference = number(node.left, sample) - number(node.right, sample)
    if operation == "==":
        return np.abs(difference)
    if operation == "!=":
        return np.maximum(margin - np.abs(difference), 0.0)
    return np.maximum((difference if operation in ("<", "<=") else -difference) + margin, 0.0)


def each_sample(evaluate, node, tensors, **options):
    """Apply :func:`holds` or :func:`price` to every sample of bound tensors; ``(batch, *axes)``."""
    arrays = {name: tensor.detach().numpy() for name, tensor in tensors.items()}
    batch = len(next(iter(arrays.values())))
    results = [evaluate(node, {name: values[sample] for name, values in arrays.items()}, **options) for sample in range(batch)]
    return np.stack(results) if results else np.zeros(0)

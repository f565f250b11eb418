"""LogicLoss in the loops that people write: each ends like the plain one."""

import contextlib
import copy

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import dualogic as dl
from dualogic.compile.implication import excess
from dualogic.losses import truncated_normal_loss

SAMPLES, BATCH, STEPS = 24, 8, 6


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 4)).double()


def rule():
    f = dl.categorical("f", 4, input="logits")
    p = f.probabilities
    return {"one": (f == 1) >> (f != 2), "mass": ((p[0] + p[1] == 0) | (p[0] + p[1] == 1))}


def batches():
    generator = torch.Generator().manual_seed(1)
    data = torch.randn(SAMPLES, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 4, (SAMPLES,), generator=generator)
    for _ in range(STEPS):
        index = torch.randperm(SAMPLES, generator=generator)[:BATCH]
        yield index, data[index], labels[index]


def make(**options):
    return dl.LogicLoss(rule(), num_samples=SAMPLES, dtype=torch.float64, **options)


def plain():
    net, logic = network(), make()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, x, y in batches():
        logits = net(x)
        loss = functional.cross_entropy(logits, y) + logic(index, f=logits)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net, logic


@pytest.fixture(scope="module")
def reference():
    return plain()


def assert_same(net, logic, reference, **tolerance):
    expected_net, expected_logic = reference
    for mine, theirs in zip(net.parameters(), expected_net.parameters()):
        torch.testing.assert_close(mine, theirs, **tolerance)
    every = torch.arange(SAMPLES)
    for path, value in logic.weights(every).items():
        torch.testing.assert_close(value, expected_logic.weights(every)[path], **tolerance)
    torch.testing.assert_close(logic.delta, expected_logic.delta, **tolerance)


def test_duals_did_move(reference):
    assert (reference[1].weights(torch.arange(SAMPLES))["one"] - 0.5).abs().max() > 1e-3


def test_gradient_accumulation(reference):
    """Halves of a batch: per-visit dual steps do not see the split; only delta, set per call, needs to be held."""
    method = dl.methods.Dual(floor=1.0, ceiling=1.0)
    results = []
    for parts in (1, 2):
        net, logic = network(), make(method=method)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for index, x, y in batches():
            optimizer.zero_grad()
            for piece in range(parts):
                part = slice(piece * BATCH // parts, (piece + 1) * BATCH // parts)
                logits = net(x[part])
                loss = functional.cross_entropy(logits, y[part]) + logic(index[part], f=logits)
                (loss / parts).backward()
            optimizer.step()
        results.append((net, logic))
    assert_same(*results[1], results[0])


def test_loss_scaling_clipping_and_the_optimizer_do_not_touch_the_duals():
    final = []
    for scale in (1.0, 1024.0):
        net, logic = network(), make()
        for index, x, _ in batches():
            loss = logic(index, f=net(x)) * scale
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1e-9)
        final.append(logic)
    assert torch.equal(final[0]._table.values, final[1]._table.values)


def test_gradient_scaler(reference):
    net, logic = network(), make()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    for index, x, y in batches():
        logits = net(x)
        loss = functional.cross_entropy(logits, y) + logic(index, f=logits)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert_same(net, logic, reference)


def test_autocast_costs_are_computed_in_full_precision():
    net = network().float()
    inside, outside = make(), make()
    for index, x, _ in batches():
        with torch.autocast("cpu", torch.bfloat16):
            logits = net(x.float())
            assert logits.dtype is torch.bfloat16
            loss = inside(index, f=logits)
        assert loss.dtype is torch.float32
        expected = outside(index, f=logits.float())
        assert torch.equal(loss, expected)
        loss.backward()
    assert torch.equal(inside._table.values, outside._table.values)


def test_matrix_products_of_a_rule_ignore_autocast():
    p = dl.var("p", 6)
    mass = p @ torch.rand(6, 3)
    logic = dl.LogicLoss((mass <= 0.1).all(), reduction="none")
    value = torch.rand(4, 6, requires_grad=True)
    with logic.frozen():
        expected = logic(p=value)
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(logic(p=value), expected)


def test_activation_checkpointing_of_the_network(reference):
    net, logic = network(), make()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, x, y in batches():
        logits = checkpoint(net, x, use_reentrant=False)
        loss = functional.cross_entropy(logits, y) + logic(index, f=logits)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert_same(net, logic, reference)


def test_activation_checkpointing_of_the_loss_itself():
    """Recomputed in backward: with manual updates it equals the loss outside of the checkpoint; otherwise it is refused."""
    results = []
    for recompute in (False, True):
        net, logic = network(), make(update="manual")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for index, x, _ in batches():

            def whole(x, index=index, net=net, logic=logic):
                return logic(index, f=net(x))

            loss = checkpoint(whole, x, use_reentrant=False) if recompute else whole(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            logic.step()
        results.append((net, logic))
    assert_same(*results[1], results[0])

    net, logic = network(), make()
    index, x, _ = next(iter(batches()))
    loss = checkpoint(lambda x: logic(index, f=net(x)), x.requires_grad_(), use_reentrant=False)
    with pytest.raises(dl.errors.StateError, match='update="manual"'):
        loss.backward()


def test_one_manual_update_ends_in_the_same_state_as_one_in_forward():
    """Only the loss of a manual call differs: it is taken before the duals move."""
    manual, forward, first = make(update="manual"), make(), make(method=dl.methods.Dual(loss_first=True))
    net = network()
    index, x, _ = next(iter(batches()))
    logits = net(x)
    assert torch.equal(manual(index, f=logits), first(index, f=logits))
    forward(index, f=logits)
    assert (manual._table.values == 0).all()
    manual.step()
    assert torch.equal(manual._table.values, forward._table.values)
    assert torch.equal(manual.delta, forward.delta)


def test_closure_optimizer():
    """L-BFGS evaluates the loss many times per step; the duals move once."""
    net, logic = network(), make(update="manual")
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=5)
    twin_net, twin = network(), make()
    twin_optimizer = torch.optim.LBFGS(twin_net.parameters(), lr=0.5, max_iter=5)
    for index, x, y in batches():
        calls = 0

        def closure(index=index, x=x, y=y):
            nonlocal calls
            calls += 1
            optimizer.zero_grad()
            logits = net(x)
            loss = functional.cross_entropy(logits, y) + logic(index, f=logits)
            loss.backward()
            return loss

        optimizer.step(closure)
        before = copy.deepcopy(logic)
        logic.step()
        assert calls > 1
        assert not torch.equal(before._table.values, logic._table.values)

        # The plain loop: evaluations with updates suspended, then one with them, at the point of the last evaluation.
        seen = []

        def frozen_closure(index=index, x=x, y=y, seen=seen):
            twin_optimizer.zero_grad()
            seen.append(twin_net(x))
            with twin.frozen():
                loss = functional.cross_entropy(seen[-1], y) + twin(index, f=seen[-1])
            loss.backward()
            return loss

        twin_optimizer.step(frozen_closure)
        twin(index, f=seen[-1])
    assert_same(net, logic, (twin_net, twin))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # dynamo looks at it
def test_compiled_step(reference):
    net, logic = network(), make()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    compiled = torch.compile(logic, fullgraph=True, backend="aot_eager")
    for index, x, y in batches():
        logits = net(x)
        loss = functional.cross_entropy(logits, y) + compiled(index, f=logits)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert_same(net, logic, reference)


def test_eval_and_no_grad_and_frozen_suspend_updates():
    logic = make()
    index, x, _ = next(iter(batches()))
    logits = network()(x)
    logic(index, f=logits)
    before = {name: value.clone() for name, value in logic.state_dict().items() if isinstance(value, torch.Tensor)}
    for context in (contextlib.nullcontext, torch.no_grad, logic.frozen):
        logic.train(context is not contextlib.nullcontext)
        with context():
            logic(index, f=logits)
        after = logic.state_dict()
        assert all(torch.equal(after[name], value) for name, value in before.items())
    logic.train()
    logic(index, f=logits)
    assert not torch.equal(logic.state_dict()["table"], before["table"])


def test_eval_without_index_uses_the_optimal_duals():
    logic = make(reduction="none").eval()
    _, x, _ = next(iter(batches()))
    logits = network()(x)
    f = rule()["one"].antecedent.operand
    certain = [(f == 1).cost("log", f=logits), (f != 2).cost("log", f=logits)]
    costs = [excess(*certain, logarithmic=True), rule()["mass"].cost("log", f=logits)]
    expected = sum(truncated_normal_loss(cost, torch.ones((), dtype=cost.dtype)) for cost in costs) / 2
    torch.testing.assert_close(logic(f=logits), expected)


def test_gradients_are_those_of_the_weighted_cost():
    """No gradient flows through the duals or delta."""
    logic = make()
    index, x, _ = next(iter(batches()))
    logits = network()(x).detach().requires_grad_()
    loss = logic(index, f=logits)
    (gradient,) = torch.autograd.grad(loss, logits)
    with logic.frozen():
        old_delta = torch.ones_like(logic.delta)
        new_delta = logic.delta.clone()
        logic._state["delta"] = old_delta
        (again,) = torch.autograd.grad(logic(index, f=logits), logits)
        logic._state["delta"] = new_delta
    torch.testing.assert_close(gradient, again)


def test_a_loss_made_in_inference_mode_can_be_trained():
    with torch.inference_mode():
        logic = make()
    other = make()
    index, data, _ = next(batches())
    for loss in (logic, other):
        loss(index, f=network()(data)).backward()
    assert logic.delta.tolist() == other.delta.tolist()
    assert torch.equal(logic.state_dict()["table"], other.state_dict()["table"])
    assert logic.state_dict()["table"].any()


a, b, x, y = dl.boolean("a"), dl.boolean("b", input="logits"), dl.var("x"), dl.var("y")
c, d = dl.categorical("c", 3), dl.categorical("d", 3, input="logits")
TRANSFORMED = [(x <= 0) | (y <= 0), c != 1, a >> (c == 1), dl.Iff(b, d == 2), (d == 0) >> (c == 2), a | b, (a & b) >> (y <= 0)]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # torch.func.jvp's own doing
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")  # of torch.vmap
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("method", ["dual", "uniform", "dl2", "pd2", "godel", "ste", "semantic", "problog"])
@pytest.mark.parametrize("rule", TRANSFORMED, ids=str)
def test_function_transforms(rule, method, frozen):
    """Derivatives backward and forward, for each sample too, are those of an ordinary call."""
    if method in ("semantic", "problog") and {"x", "y"} & {*rule.symbols}:
        pytest.skip("numbers cannot be counted")
    logic = dl.LogicLoss(rule, num_samples=4, method=method).train(frozen)
    index = torch.arange(4) if frozen else None
    generator = torch.Generator().manual_seed(0)
    shapes = {name: (4, 3) if name in "cd" else (4,) for name in rule.symbols}
    at = [torch.rand(shape, generator=generator) for shape in shapes.values()]
    at = [value.softmax(-1) if name == "c" else value for name, value in zip(shapes, at)]
    along = [torch.rand(value.shape, generator=generator) for value in at]

    def loss(*values, index=index):
        return logic(index, **dict(zip(shapes, values)))

    with logic.frozen():
        leaves = [value.clone().requires_grad_() for value in at]
        expected = torch.autograd.grad(loss(*leaves), leaves)
        places = tuple(range(len(at)))
        torch.testing.assert_close(torch.func.grad(loss, places)(*at), expected)
        slope = sum((gradient * tangent).sum() for gradient, tangent in zip(expected, along))
        torch.testing.assert_close(torch.func.jvp(loss, tuple(at), tuple(along))[1], slope)
        with forward_ad.dual_level():
            both = [forward_ad.make_dual(value, tangent) for value, tangent in zip(at, along)]
            torch.testing.assert_close(forward_ad.unpack_dual(loss(*both)).tangent, slope)

        def lose(row, *sample):
            return loss(*(value.unsqueeze(0) for value in sample), index=row.unsqueeze(0) if frozen else None)

        each = torch.vmap(torch.func.grad(lose, tuple(place + 1 for place in places)))(torch.arange(4), *at)
        torch.testing.assert_close([gradient / 4 for gradient in each], [*expected])
        if not frozen:
            torch.func.hessian(loss)(*at)


def test_a_transform_of_a_step_that_is_taken_by_hand():
    plain, other = (dl.LogicLoss(a | (y <= 0), num_samples=4, update="manual") for _ in range(2))
    values = {"a": torch.rand(4), "y": torch.rand(4)}
    plain(torch.arange(4), a=values["a"].requires_grad_(), y=values["y"])
    torch.func.grad(lambda a: other(torch.arange(4), a=a, y=values["y"]))(values["a"].detach())
    for logic in (plain, other):
        logic.step()
    assert torch.equal(plain.weights(torch.arange(4))["rule"], other.weights(torch.arange(4))["rule"])


def test_a_transform_may_come_first():
    logic = dl.LogicLoss(a >> b, method="pd1").eval()
    values = torch.rand(3, 4)
    found = torch.vmap(lambda p, q: logic(a=p, b=q))(values, values)
    torch.testing.assert_close(found, torch.stack([logic(a=value, b=value) for value in values]))
    costs = torch.vmap(lambda p: (a | ~a).cost(a=p))(values)
    torch.testing.assert_close(costs, torch.stack([(a | ~a).cost(a=value) for value in values]))

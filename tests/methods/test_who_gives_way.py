"""Who gives way, antecedent or consequent: said by a marker, by the method, or found out from what is believed."""

import copy
import io

import pytest
import torch
from torch import nn

import dualogic as dl
from dualogic.methods.lean import PACES, advance_known, feeds_itself, share_of, start_known

a, b, c = (dl.boolean(name, input="logits") for name in "abc")
RULE = a >> b
SAMPLES, BATCH = 64, 16


def loss_of(method=None, rule=RULE, samples=SAMPLES, **options):
    return dl.LogicLoss(rule, samples, dl.methods.Dual() if method is None else method, **{"dtype": torch.float64, **options})


def batch(step, known):
    """Beliefs of sixteen samples: half of the antecedents are believed, and their consequents are not.

    With ``known`` a third of the consequents is believed where the antecedent is not, as by a network that was taught them.
    """
    generator = torch.Generator().manual_seed(step)
    index = torch.randperm(SAMPLES, generator=generator)[:BATCH]
    p = torch.where(torch.arange(BATCH) % 2 == 0, 3.0, -3.0).double()
    q = torch.where((torch.arange(BATCH) % 6 == 1) & known, 3.0, -3.0).double()
    return index, p.requires_grad_(), q.requires_grad_()


def pull(logic, known, step=0):
    """The gradient into antecedents and consequents of a frozen loss, where the rule asks for something."""
    index, p, q = batch(step, known)
    with logic.frozen():
        found = torch.autograd.grad(logic(index, a=p, b=q), (p, q))
    return found[0].sum().item(), found[1].sum().item()


def test_a_consequent_that_is_believed_only_with_its_antecedent_stays_one_way():
    """However long the rule itself teaches it."""
    logic = loss_of()
    for step in range(300):
        index, p, _ = batch(step, known=False)
        taught = torch.where(p > 0, -3.0 + 6.0 * min(step / 100, 1.0), -3.0).detach().double().requires_grad_()
        logic(index, a=p, b=taught)
    assert share_of(logic._state["known"]).item() == 1.0
    away, into = pull(logic, known=False)
    assert away == 0
    assert into < -0.01


def test_a_consequent_that_is_believed_without_its_antecedent_opens_and_stays_open():
    logic = loss_of()
    assert pull(logic, known=True)[0] == 0, "nothing is known yet"
    for step in range(200):
        index, p, q = batch(step, known=True)
        logic(index, a=p, b=q)
    assert share_of(logic._state["known"]).item() == 0.0
    away, into = pull(logic, known=True)
    assert away > 0.005
    assert into < 0
    for step in range(200):  # a rule that closed again would unlearn what it has been taught
        index, p, q = batch(step, known=False)
        logic(index, a=p, b=q)
    assert share_of(logic._state["known"]).item() == 0.0


def test_a_consequent_that_is_hardly_ever_believed_tells_nothing():
    logic = loss_of()
    for step in range(200):
        index, p, q = batch(step, known=False)
        logic(index, a=p, b=q + 2.9)  # believed at almost one half, everywhere
    assert share_of(logic._state["known"]).item() == 1.0


def test_implications_are_found_out_one_by_one():
    """Also where they are computed together, and under one connective."""
    for rules in ({"known": RULE, "taught": a >> c}, (a >> b) & (a >> c)):
        logic = loss_of(rule=rules)
        for step in range(100):
            index, p, q = batch(step, known=True)
            logic(index, a=p, b=q, c=p.detach().clone().requires_grad_())
        assert share_of(logic._state["known"]).tolist() == [0.0, 1.0]


def test_only_unmarked_implications_are_found_out():
    assert "known" not in loss_of(rule=dl.evidence(a) >> b).state_dict()
    assert share_of(loss_of(rule=dl.Iff(a, b)).state_dict()["known"]).tolist() == [0.0, 0.0]
    assert "known" not in loss_of(rule=(a | b)).state_dict()
    assert "known" not in loss_of(dl.methods.Dual(evidence=True)).state_dict()
    both = loss_of(rule=(dl.evidence(a) >> b) & (a >> c) & dl.Implies(b, c, evidence=0.5))
    assert both.state_dict()["known"].shape == (11, 1)


# ---------------------------------------------------------------------- said


@pytest.mark.parametrize("share", [True, False, 0.5])
def test_a_marker_and_the_method_say_the_same(share):
    ways = [
        loss_of(dl.methods.Dual(evidence=share)),
        loss_of(rule=dl.Implies(a, b, evidence=share)),
        loss_of(rule=dl.evidence(a, float(share)) >> b),
        loss_of(dl.methods.Dual(evidence=not share), rule=dl.Implies(a, b, evidence=share)),
    ]
    for step in range(5):
        index, p, q = batch(step, known=True)
        found = [(logic(index, a=p, b=q), *torch.autograd.grad(logic(index, a=p, b=q), (p, q))) for logic in ways]
        for other in found[1:]:
            assert all(torch.equal(mine, first) for mine, first in zip(other, found[0]))
    away, into = pull(ways[0], known=True)
    assert into < 0
    assert (away == 0) is (share is True)


def test_the_cost_does_not_depend_on_who_gives_way():
    index, p, q = batch(0, known=True)
    losses = [loss_of(dl.methods.Dual(evidence=share))(index, a=p, b=q) for share in (True, False, 0.3, "found")]
    assert all(torch.equal(loss, losses[0]) for loss in losses)


def test_what_evidence_holds_back_is_its_share_of_the_gradient_into_the_antecedent():
    """Apart from the first weights, in which a consequent has a say so far as it is known."""
    index, p, q = batch(0, known=True)
    q = torch.zeros_like(q, requires_grad=True)  # log-odds of 0: the consequent has no say
    found = {}
    for share in (0.0, 0.25, 1.0):
        found[share] = torch.autograd.grad(loss_of(dl.methods.Dual(evidence=share))(index, a=p, b=q), (p, q))
    assert found[0.0][0].abs().max() > 0
    for share, (away, into) in found.items():
        torch.testing.assert_close(away, (1 - share) * found[0.0][0])
        torch.testing.assert_close(into, found[0.0][1])


# ---------------------------------------------------------------------- the state


def run(logic, steps, known=True, **options):
    losses = []
    for step in steps:
        index, p, q = batch(step, known)
        losses.append(logic(index, a=p, b=q, **options))
        if logic.update == "manual":
            logic.step()
    return torch.stack(losses).detach()


@pytest.mark.parametrize("samples", [SAMPLES, None])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_it_resumes_to_the_bit(samples, dtype):
    straight, first = loss_of(samples=samples, dtype=dtype), loss_of(samples=samples, dtype=dtype)
    run(straight, range(10))
    run(first, range(10))
    saved = io.BytesIO()
    torch.save(first.state_dict(), saved)
    saved.seek(0)
    second = loss_of(samples=samples, dtype=dtype)
    second.load_state_dict(torch.load(saved, weights_only=True))
    copied = copy.deepcopy(first)
    expected = run(straight, range(10, 20))
    for logic in (first, second, copied):
        assert torch.equal(run(logic, range(10, 20)), expected)
        for name, value in straight.state_dict().items():
            assert not isinstance(value, torch.Tensor) or torch.equal(logic.state_dict()[name], value), name


def test_reset_forgets_what_was_found():
    logic = loss_of()
    run(logic, range(5))
    first = start_known([0], torch.float64)
    assert (logic.state_dict()["known"] != first).any()
    logic.reset_()
    assert torch.equal(logic.state_dict()["known"], first)


def test_evaluation_and_frozen_steps_find_out_nothing():
    logic = loss_of()
    run(logic, range(3))
    before = logic.state_dict()["known"].clone()
    with logic.frozen():
        run(logic, range(3))
    logic.eval()
    run(logic, range(3))
    with torch.no_grad():
        run(logic.train(), range(3))
    assert torch.equal(logic.state_dict()["known"], before)


def test_manual_updates_find_out_the_same():
    forward, manual = loss_of(), loss_of(update="manual")
    run(forward, range(20))
    run(manual, range(20))
    torch.testing.assert_close(manual.state_dict()["known"], forward.state_dict()["known"], rtol=0, atol=0)
    index, p, q = batch(20, known=True)
    manual(index, a=p, b=q)
    torch.testing.assert_close(manual.state_dict()["known"], forward.state_dict()["known"], rtol=0, atol=0)


@pytest.mark.parametrize("samples", [SAMPLES, None])
def test_where_finds_out_what_the_selected_samples_tell(samples):
    part, alone = loss_of(samples=samples), loss_of(samples=samples)
    for step in range(10):
        index, p, q = batch(step, known=True)
        where = torch.rand(BATCH, generator=torch.Generator().manual_seed(step)) < 0.5
        if step == 4:
            where = torch.zeros(BATCH, dtype=torch.bool)
        part(index, where=where, a=p, b=torch.where(where, q, torch.nan))
        if where.any():
            alone(index[where], a=p[where], b=q[where])
    torch.testing.assert_close(part.state_dict()["known"], alone.state_dict()["known"], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "method",
    [dl.methods.Dual(), dl.methods.Dual(step=0.0), dl.methods.Dual(warmup=10**9)],
    ids=["learning", "still", "hardly begun"],
)
def test_entries_of_an_axis_count_as_samples_do_and_padding_does_not(method):
    """Also where the weights of connectives do not move."""
    n = dl.axis("n", max=4)
    many, valid = (dl.boolean(name, n, input="logits") for name in "ab"), dl.mask("valid", n)
    ragged = loss_of(method, rule=dl.Implies(*many).all(where=valid), samples=4)
    flat = loss_of(samples=None)
    for step in range(20):
        _, p, q = batch(step, known=True)
        mask = torch.ones(4, 4, dtype=torch.bool)
        mask[:, 3] = step % 2 == 0
        garbage = torch.where(mask, q.view(4, 4), 50.0)
        ragged(torch.arange(4), a=p.view(4, 4), b=garbage, valid=mask)
        flat(a=p.view(4, 4)[mask], b=q.view(4, 4)[mask])
    found, expected = (share_of(logic.state_dict()["known"]) for logic in (ragged, flat))
    assert found == expected == 0
    ratios = [logic.state_dict()["known"][4] for logic in (ragged, flat)]
    torch.testing.assert_close(*ratios, rtol=0.3, atol=0.02)


def test_a_batch_that_tells_nothing_changes_nothing():
    known = start_known([0], torch.float64)
    since = torch.tensor(0), torch.tensor(PACES)
    told = advance_known(known, torch.tensor([[0.5], [0.1], [0.5], [0.1], [0.5]], dtype=torch.float64), 16, *since)
    assert told[4] > 0
    assert torch.equal(advance_known(known, torch.zeros(5, 1, dtype=torch.float64), 16, *since), known)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile's own doing
def test_a_compiled_loss_finds_out_the_same():
    torch._dynamo.reset()
    eager, module = loss_of(), loss_of()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    for step in range(3):
        index, p, q = batch(step, known=True)
        found = [(loss, *torch.autograd.grad(loss, (p, q))) for loss in (logic(index, a=p, b=q) for logic in (eager, compiled))]
        for one, two in zip(*found):
            torch.testing.assert_close(one, two)
    for name in ("known", "table", "delta"):
        torch.testing.assert_close(module.state_dict()[name], eager.state_dict()[name])


def test_transforms_find_the_same_gradient():
    logic = loss_of(dl.methods.Dual(evidence=0.5))
    index, p, q = batch(0, known=True)
    with logic.frozen():
        expected = torch.autograd.grad(logic(index, a=p, b=q), (p, q))
        found = torch.func.grad(lambda a, b: logic(index, a=a, b=b), argnums=(0, 1))(p.detach(), q.detach())
    for one, two in zip(expected, found):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("rules", [RULE, {"one": RULE, "two": (a >> c) & (b | c), "three": (a & b) >> c}], ids=["one", "several"])
def test_what_no_move_changes_is_computed_once_and_the_same(rules):
    logic = loss_of(rule=rules)
    for step in range(3):
        index, p, q = batch(step, known=True)
        logic(index, **dict(list(zip("abc", (p, q, p.detach().flip(0))))[: 2 if rules is RULE else 3]))
    program, state = logic._program, logic._state
    assert program.settled
    found = []
    for settle in (False, True):
        index, p, q = batch(7, known=True)
        tensors = dict(list(zip("abc", (p, q, p.detach().flip(0))))[: 2 if rules is RULE else 3])
        values = program.evaluate(program.plan.bind(tensors, True))
        values = program.settle(state, values) if settle else values
        rows = logic._table.fetch(index)
        with torch.no_grad():
            costs, moves, noted = program.moves(rows, state, values)
        losses, _ = program.losses(rows + moves, state, values)
        found.append((costs, moves, noted, losses, *torch.autograd.grad(losses.sum(), (p, q))))
    for one, other in zip(*found):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def train_on_pairs(rule):
    """How often a network is right about who is related to whom; it reads both orders of a pair, and one in twelve is related."""
    generator = torch.Generator().manual_seed(0)

    def make(count):
        first, second = torch.randn(2, count, 8, generator=generator)
        near = -(first[:, :4] - second[:, :4]).square().sum(1)
        return torch.cat([first, second], 1), (near > near.quantile(0.92)).float()

    (inputs, labels), (pool, _), (new, truth) = make(100), make(1500), make(2000)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def ask(pairs):
        return network(torch.cat([pairs, (pairs[:, :8] - pairs[:, 8:]).abs()], 1))

    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    logic = dl.LogicLoss(rule, 1500)
    entries = logic.symbols["xy"].shape
    for _ in range(25):
        for index in torch.randperm(1500, generator=generator).split(100):
            task = nn.functional.binary_cross_entropy_with_logits(ask(inputs).squeeze(1), labels)
            here, back = ask(pool[index]), ask(pool[index].roll(8, 1))
            bound = {"xy": here, "yx": back} if entries else {"xy": here.squeeze(1), "yx": back.squeeze(1)}
            optimizer.zero_grad()
            (task + logic(index, **bound)).backward()
            optimizer.step()
    return ((ask(new).squeeze(1) > 0) == truth.bool()).float().mean().item()


def test_a_relation_that_goes_both_ways_does_not_feed_itself(monkeypatch):
    xy, yx = (dl.boolean(name, input="logits") for name in ("xy", "yx"))
    assert train_on_pairs(xy >> yx) > 0.75
    monkeypatch.setattr("dualogic.methods.lean.FOLLOWS", float("inf"))
    assert train_on_pairs(xy >> yx) < 0.65


def test_entries_of_one_kind_are_no_evidence_of_each_other():
    xy, yx = (dl.boolean(name, 1, input="logits") for name in ("xy", "yx"))
    assert train_on_pairs(xy[0] >> yx[0]) > 0.9  # 0.914 without the rule
    f, g = (dl.categorical(name, 3) for name in "fg")
    found = dl.LogicLoss({"one": (f == 1) >> (g == 1), "two": (f == 1) >> (g == 2)})._program.plan.levels
    assert {level.paths: level.mutual for level in found} == {("one",): True, ("two",): False}


def test_evidence_that_rises_beside_a_consequent_that_is_to_be_learned_stays_evidence():
    rising = torch.tensor([[0.3, 0.3], [0.2, 0.2], [0.29, 0.28], [0.3, 0.3]], dtype=torch.float64)
    assert feeds_itself(rising, torch.tensor([1e6, 1e6])).tolist() == [True, False]
    assert feeds_itself(rising, torch.tensor([10.0, 1e6])).tolist() == [False, False]  # by chance
    assert feeds_itself(rising[[2, 1, 0, 3]], torch.tensor([1e6, 1e6])).tolist() == [True, True]

"""Changes of training images."""

import torch

from dualogic_paper.tasks import augment
from dualogic_paper.tasks.augment import PADDING


def test_crops_are_pieces_of_their_own_image():
    images = torch.arange(5 * 9 * 9 * 3, dtype=torch.int32).view(5, 9, 9, 3)
    padded = augment.with_margin(images)
    assert padded.shape == (5, 9 + 2 * PADDING, 9 + 2 * PADDING, 3)
    expected = torch.nn.functional.pad(images.permute(0, 3, 1, 2).double(), (PADDING,) * 4, mode="reflect")
    torch.testing.assert_close(padded.permute(0, 3, 1, 2).double(), expected)
    torch.manual_seed(0)
    numbers = torch.tensor([3, 0, 3, 1] * 8)
    crops, mirrored = augment.crop(padded, numbers), 0
    for number, crop in zip(numbers, crops):
        pieces = padded[number].unfold(0, 9, 1).unfold(1, 9, 1).permute(0, 1, 3, 4, 2).flatten(0, 1)
        straight = (pieces == crop).flatten(1).all(1).any()
        turned = (pieces == crop.flip(1)).flatten(1).all(1).any()
        assert straight or turned
        mirrored += int(not straight)
    assert 4 < mirrored < 28


def test_a_distorted_image_shows_its_own_pixels(monkeypatch):
    # One colour for each image, without changes of colour: what is not erased must come from that image.
    monkeypatch.setattr(augment, "MOST_COLOUR", 0.0)
    images = torch.arange(6, dtype=torch.uint8).view(6, 1, 1, 1).expand(6, 16, 16, 3) * 40
    torch.manual_seed(0)
    numbers = torch.tensor([5, 1, 0, 3])
    found = augment.distort(augment.with_margin(images), numbers, torch.tensor([7.0, 8.0, 9.0]))
    own = (found - 40.0 * numbers.view(-1, 1, 1, 1)).abs().amax(3) < 1e-3
    erased = (found == torch.tensor([7.0, 8.0, 9.0])).all(3)
    assert (own ^ erased).all()
    pixels = erased.flatten(1).sum(1)
    assert ((pixels > 0) & (pixels <= 64)).all()


def test_a_distortion_without_freedom_changes_nothing(monkeypatch):
    for name in ("MOST_TURN", "MOST_COLOUR", "ERASED"):
        monkeypatch.setattr(augment, name, 0.0)
    monkeypatch.setattr(augment, "MOST_ZOOM", 1.0)
    images = torch.randint(256, (8, 12, 12, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    padded, numbers = augment.with_margin(images), torch.arange(8)
    torch.manual_seed(1)
    for number, found in zip(numbers, augment.distort(padded, numbers, torch.zeros(3))):
        pieces = padded[number].unfold(0, 12, 1).unfold(1, 12, 1).permute(0, 1, 3, 4, 2).flatten(0, 1).float()
        same = [((pieces - shown).abs() < 1e-3).flatten(1).all(1).any() for shown in (found, found.flip(1))]
        assert any(same)


def test_turns_are_turns(monkeypatch):
    # A gradient along the rows, turned by a right angle, is one along the columns.
    for name in ("MOST_COLOUR", "ERASED", "PADDING"):
        monkeypatch.setattr(augment, name, 0)
    monkeypatch.setattr(augment, "MOST_ZOOM", 1.0)
    monkeypatch.setattr(torch, "rand", lambda *sizes, device=None: torch.ones(sizes, device=device))
    monkeypatch.setattr(augment, "MOST_TURN", torch.pi / 2)
    monkeypatch.setattr(augment, "KEPT", 2.0)
    image = torch.arange(8.0).view(1, 8, 1, 1).expand(1, 8, 8, 3)
    turned = augment.turn(image, torch.tensor([0]))
    torch.testing.assert_close(turned, torch.rot90(image, 1, (1, 2)))

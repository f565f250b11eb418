"""Random changes of images that leave what they show: crops and mirror images; turns, zooms, colours and erased squares too."""

import math

import torch
from torch import Tensor

PADDING = 4
MOST_TURN = math.pi / 12
MOST_ZOOM = 1.25
MOST_COLOUR = 0.4
ERASED = 0.5
KEPT = 0.5  # the share of images to which each change of :func:`distort` but the first and last is made


def with_margin(images: Tensor) -> Tensor:
    """Images ``(n, h, w, 3)`` with a mirrored margin of :data:`PADDING` pixels on each side."""
    left, right = images[:, :, 1 : PADDING + 1].flip(2), images[:, :, -PADDING - 1 : -1].flip(2)
    wide = torch.cat([left, images, right], dim=2)
    return torch.cat([wide[:, 1 : PADDING + 1].flip(1), wide, wide[:, -PADDING - 1 : -1].flip(1)], dim=1)


def crop(images: Tensor, numbers: Tensor) -> Tensor:
    """Random crops ``(batch, h, w, 3)``, half of them mirrored, of some of the images ``(n, h + 8, w + 8, 3)`` with margins."""
    device, batch = numbers.device, len(numbers)
    size = images.shape[1] - 2 * PADDING
    down, right = torch.randint(2 * PADDING + 1, (2, batch, 1), device=device)
    steps = torch.arange(size, device=device)
    columns = torch.where(torch.rand(batch, 1, device=device) < 0.5, steps, size - 1 - steps) + right
    return images[numbers.view(-1, 1, 1), (steps + down).unsqueeze(2), columns.unsqueeze(1)]


def distort(images: Tensor, numbers: Tensor, fill: Tensor) -> Tensor:
    """Moved and mirrored at random, some turned, zoomed, brightened and so on, with a square of the colour ``fill`` on it: from
    bytes ``(n, h + 8, w + 8, 3)`` with margins to numbers from 0 to 255, ``(batch, h, w, 3)``.
    """
    sides = torch.rand(len(numbers), 1, device=numbers.device)
    changed = turn(images, numbers).float()
    # Brightness, contrast and saturation times a factor near 1 each, or left alone.
    draws = torch.rand(2, 3, len(changed), 1, 1, 1, device=changed.device)
    brightness, contrast, saturation = 1 + MOST_COLOUR * (2 * draws[0] - 1) * (draws[1] < KEPT)
    changed = changed * brightness
    mean = changed.mean((1, 2, 3), keepdim=True)
    changed = (changed - mean) * contrast + mean
    grey = changed.mean(3, keepdim=True)
    changed = ((changed - grey) * saturation + grey).clamp(0, 255)
    batch, size = changed.shape[:2]
    centres = torch.rand(2, batch, 1, device=changed.device) * size
    down, right = (torch.arange(size, device=changed.device) + 0.5 - centres).abs() < sides * (ERASED * size / 2)
    return torch.where((down.unsqueeze(2) & right.unsqueeze(1)).unsqueeze(3), fill, changed)


def turn(images: Tensor, numbers: Tensor, *, mirror: bool = True) -> Tensor:
    """Some of the images ``(n, h + 8, w + 8, channels)``, moved and perhaps turned, zoomed and mirrored: the nearest pixels."""
    device, batch = numbers.device, len(numbers)
    wide = images.shape[1]
    size = wide - 2 * PADDING

    def draw(most: float) -> Tensor:
        return (2 * torch.rand(batch, 1, 1, device=device) - 1) * most

    down, right = draw(PADDING), draw(PADDING)
    turned, zoomed = (torch.rand(2, batch, 1, 1, device=device) < KEPT).float()
    angle, zoom = draw(MOST_TURN) * turned, torch.exp(draw(math.log(MOST_ZOOM)) * zoomed)
    side = torch.where(torch.rand(batch, 1, 1, device=device) < 0.5, 1.0, -1.0) if mirror else 1.0
    steps = torch.arange(size, device=device) - (size - 1) / 2
    rows, columns = steps.view(1, -1, 1), steps.view(1, 1, -1) * side
    middle = (wide - 1) / 2
    sources = (
        (angle.cos() * rows - angle.sin() * columns) / zoom + down + middle,
        (angle.sin() * rows + angle.cos() * columns) / zoom + right + middle,
    )
    found_rows, found_columns = (source.round().long().clamp(0, wide - 1) for source in sources)
    return images[numbers.view(-1, 1, 1), found_rows, found_columns]

"""What a command answers to words that make no sense."""

from dualogic.cli import main


def answer(words, capsys):
    """The one line that a command answers."""
    assert main(words) == 1
    captured = capsys.readouterr()
    assert captured.out.strip() == ""
    (line,) = captured.err.strip().splitlines()
    assert line.startswith("dualogic: ")
    return line

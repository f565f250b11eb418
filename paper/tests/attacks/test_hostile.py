"""The options that the long attack gives to commands are refused; ``tests/attacks/run.py`` makes the rest of it."""

import pytest

from attacks.hostile import OPTIONS, fixed
from dualogic.cli import main


def test_every_option_is_asked_about(tmp_path):
    names = list(fixed(tmp_path))
    assert {"rule file: empty", "run --jobs 0", "run --seeds 0..99999999999", "run --weight nan"} <= set(names)
    assert sum(name.startswith("run ") for name in names) == len(OPTIONS)


@pytest.mark.parametrize("words", OPTIONS, ids=lambda words: " ".join(words)[:40])
def test_every_option_is_refused_in_words(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUALOGIC_DATA", str(tmp_path / "none"))
    try:
        status = main(["run", "digits", *words])
    except SystemExit as error:  # of words that cannot be parsed
        status = error.code
    said = capsys.readouterr().err
    assert status in (1, 2)
    assert said.strip()
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []

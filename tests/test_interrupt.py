"""Ctrl-C within a solver: it is remembered, and its foreign warning stays off the terminal."""

from __future__ import annotations

import sys
import threading

import pytest

from gtcontrol._interrupt import Interruption

#: As CasADi writes it, in pieces.
CAUGHT = (
    "CasADi - ", "2026", "-", "11", "-", "30", " ", "08", ":", "24", ' WARNING("',
    "KeyboardInterruptException", '") [', ".../casadi/interfaces/ipopt/ipopt_nlp.cpp:132", "]\n",
)  # fmt: skip


def test_the_warning_about_a_caught_interruption_is_left_out(capsys):
    before = sys.stderr
    with Interruption():
        for piece in ("one\n", *CAUGHT, "two ", "three", *CAUGHT, "\n", *CAUGHT):
            sys.stderr.write(piece)
        assert capsys.readouterr().err == "one\ntwo three\n"
    assert sys.stderr is before
    assert capsys.readouterr().err == ""


def test_everything_else_is_written(capsys):
    other = [piece.replace("KeyboardInterruptException", "nlp failed") for piece in CAUGHT]
    with Interruption():
        for piece in other:
            sys.stderr.write(piece)
        assert capsys.readouterr().err == "".join(other)
        sys.stderr.write("CasADi - without an end")
        sys.stderr.flush()
        assert sys.stderr.isatty() is False
    assert capsys.readouterr().err == "CasADi - without an end"


def test_what_raises_restores_the_stream():
    before = sys.stderr
    with pytest.raises(KeyboardInterrupt), Interruption():
        raise KeyboardInterrupt
    assert sys.stderr is before


def test_other_threads_change_nothing():
    before, seen = sys.stderr, []

    def work() -> None:
        with Interruption():
            seen.append(sys.stderr)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
    assert sys.stderr is before


def test_an_interruption_under_another_name_is_an_interruption():
    """NumPy turned one that came inside CasADi's `DM.__array__` into a SystemError."""
    interruption = Interruption()
    interruption.requested = True
    with pytest.raises(KeyboardInterrupt), interruption.unmasked():
        raise SystemError("returned a result with an exception set")


def test_other_errors_keep_their_name():
    with pytest.raises(SystemError), Interruption() as interruption, interruption.unmasked():
        raise SystemError("a bug")

"""Exports into object stores of others. They run beside the clients of npm's, which are brought in the same lane: azurite is one
of its packages."""
import pathlib, sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / 'api'), str(HERE.parent)]

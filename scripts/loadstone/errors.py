"""Errors meant for people: what is wrong, where, and what to do about it."""


class LoadstoneError(Exception):
    """Something the user can understand and mend. Entry points print its text without a traceback."""

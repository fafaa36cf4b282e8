"""Errors meant for people: what is wrong, where, and what to do about it."""


class LoadstoneError(Exception):
    """Something the user can understand and mend. Entry points print its text without a traceback."""


def printable(text: str) -> str:
    """The text without what a terminal would obey: of control characters only tabs and line ends stay."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)

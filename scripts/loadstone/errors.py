"""Errors for people: what is wrong, where, and what to do about it."""


class LoadstoneError(Exception):
    """An error that the user can understand and fix. Entry points print its text without a traceback."""


def printable(text: str) -> str:
    """The text without control characters, which a terminal would interpret, except tabs and line ends."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)

"""What the tests of statistics share: projects and attacks as the tables' tests have them."""

from tables.conftest import attack, project

__all__ = ["attack", "project"]

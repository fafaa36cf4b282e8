"""Publishes the site where others read it: a branch of a repository, a folder, or S3-compatible storage.

``files.py`` says which files belong to a site, ``publications.py`` how publications lie at a destination, and
``publish.py`` in which order they get there; ``destinations.py`` and ``branch.py`` are the destinations.
"""

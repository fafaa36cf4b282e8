"""The site -> where others read it: a branch of a repository, a folder, or S3-compatible storage.

``files.py`` says what belongs to a site, ``layout.py`` how publications lie at a destination, ``publish.py`` in which
order they get there; ``folder.py``, ``branch.py`` and ``s3.py`` are the destinations, ``declared.py`` chooses one.
"""

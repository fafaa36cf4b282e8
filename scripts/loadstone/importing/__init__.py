"""Results of other tools -> the archive, unchanged, under names of their own, as config/imports.yaml declares them.

``declared`` reads the declaration, ``sources`` finds the files and blocks that it means, ``detect`` knows their format,
``plan`` gives each its place and refuses what does not fit, ``copying`` does it.
"""

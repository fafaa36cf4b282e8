"""Results of other tools -> the archive, unchanged, under names of their own, as config/imports.yaml declares them.

``declaration`` reads what is declared and finds the files and blocks that it means, ``plan`` gives each its place and
refuses what does not fit, ``copying`` does it.
"""

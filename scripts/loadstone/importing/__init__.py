"""Results of other tools -> the archive, unchanged, under names of their own, as config/imports.yaml declares them.

``declaration`` parses the file and finds the matching files and blocks; ``plan`` assigns destinations and rejects
mismatches; ``copying`` copies the files.
"""

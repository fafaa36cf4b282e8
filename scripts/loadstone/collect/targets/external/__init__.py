"""The external target: what already runs somewhere, with commands that prepare a variant and clean up after it."""

"""What leaves this machine: the site to where it is read, a bundle to check anywhere, the archive to a bucket.

In: archive, tables and site. Out: a published site, a bundle file, objects in a bucket.
"""

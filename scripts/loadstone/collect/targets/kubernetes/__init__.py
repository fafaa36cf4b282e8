"""The Kubernetes target: deployments of a real cluster, scaled for one run, and always restored."""

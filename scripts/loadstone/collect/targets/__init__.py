"""What is measured: processes of this machine, or deployments of a Kubernetes cluster, brought up for one run."""

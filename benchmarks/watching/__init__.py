"""Memory and disk of `tox -e watch` while others upgrade the cluster that it watches."""

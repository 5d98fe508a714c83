"""An executable model of the transaction protocol: which answers a broker may give."""

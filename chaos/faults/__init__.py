"""The faults, one kind in each module. A new one is a class here and an example in `tests/chaos/test_faults.py`."""

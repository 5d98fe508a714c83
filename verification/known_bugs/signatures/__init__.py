"""Signatures: functions over the evidence that recognise a known bug in a violation, a file for each bug.

Only evidence gives a name. Release and anomaly alone prove nothing, because another defect can look the same. A violation
without the signature stays unnamed (`recognise`).
"""

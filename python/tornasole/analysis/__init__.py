"""Analysis: what helps to ask trials and to write rules."""

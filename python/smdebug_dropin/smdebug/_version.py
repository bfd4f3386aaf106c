"""The version of the interface that this package stands in for."""

__version__ = "1.0.34"

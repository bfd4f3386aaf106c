"""What every framework's hook is built on: configuration, collections, and the hook without a framework."""

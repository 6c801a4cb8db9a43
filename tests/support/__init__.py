"""What tests share: naive definitions, lists of instances, broken components, servers and fixtures."""

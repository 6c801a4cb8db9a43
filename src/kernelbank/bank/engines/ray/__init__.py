"""The Ray engine: shards in processes of a Ray cluster."""

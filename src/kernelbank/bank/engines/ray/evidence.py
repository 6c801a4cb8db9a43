"""What a shard sends to the driver."""

EVIDENCE = ("curvature", "window_loss", "slot_cost", "slot_loss", "slot_predictions")
"""What phase 1 leaves for every slot and sample, in this order."""

"""From scaled predictions to the target's units, intervals and probabilities."""

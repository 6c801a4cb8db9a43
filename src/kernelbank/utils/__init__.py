"""Small helpers that every package may use: validation, rendering, interrupts, frames."""

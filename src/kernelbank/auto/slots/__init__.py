"""The slots that an AutoBank may run, and which of them run; `default_pool` is the way in."""

from hypothesis import settings

# Examples are drawn the same way in every run, so that a failure here is a failure everywhere.
settings.register_profile("house", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("house")

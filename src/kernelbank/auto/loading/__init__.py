"""`kb.load`: banks from files, which may come from anywhere; `loading` is the way in."""

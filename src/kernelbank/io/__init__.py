"""Where rows come from, where predictions go, and the files that banks are kept in."""

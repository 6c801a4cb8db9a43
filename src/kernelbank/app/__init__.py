"""What a person starts: the command line, runs over a stream, reports and live pages."""

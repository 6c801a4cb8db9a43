"""The accuracy contest: streams, players, scores, tables and pictures, one idea a file."""

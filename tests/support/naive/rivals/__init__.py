"""Methods of other authors, written from their papers and programs by somebody who had not seen this code."""

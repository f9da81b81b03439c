"""What a run found, for people: the summary, the terminal, and a page that opens in a browser."""

"""They listen to the signals of a crawl, write and count, and change nothing."""

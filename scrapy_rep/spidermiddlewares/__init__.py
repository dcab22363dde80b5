"""What becomes of the output of a callback: meta tags and ``X-Robots-Tag`` are obeyed here."""

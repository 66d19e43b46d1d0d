"""Reports of a result: text, figures, and one HTML page."""

"""Problems: the values that say what is asked, and the files that hold them."""

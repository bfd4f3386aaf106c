"""Records: the frames of event files."""

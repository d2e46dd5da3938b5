//! The tag=value codec: frame finder, message view, encoder.

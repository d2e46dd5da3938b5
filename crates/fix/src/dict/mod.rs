//! Dictionaries: what a message may hold, and whether it does.

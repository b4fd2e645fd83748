"""Model files: bytes on disk, arrays, and values as JSON."""

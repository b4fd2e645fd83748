"""The container of model files: bytes and disks, named arrays, values as JSON."""

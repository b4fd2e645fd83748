"""What predicts by margins: kernel machines and hyperplanes."""

"""What CUCo knows about device-initiated communication, as data."""

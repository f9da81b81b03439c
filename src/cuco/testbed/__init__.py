"""Where candidates are built and run: the emulator, the GPUs of this machine, a cluster."""

"""The search: an archive that survives anything, a policy that decides, an engine that carries it out."""

"""Language models: `client` is the seam, `pool` opens them, the rest is behind it."""

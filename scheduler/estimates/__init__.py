"""Start estimates: when each waiting job will start, as P50 and P90, and how that came out."""

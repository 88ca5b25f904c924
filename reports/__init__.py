"""Floor 3: pages and pictures from marts. Computes no figure that no mart holds."""

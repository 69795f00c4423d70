"""Speed and size, always as ratios measured side by side in one run."""

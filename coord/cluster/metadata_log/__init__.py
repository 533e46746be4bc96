"""The metadata log: its batches and checkpoints, and the replay of its records into an image."""

"""Containers of ours: the engine, images, what a container may do, and what is seen of it from outside."""

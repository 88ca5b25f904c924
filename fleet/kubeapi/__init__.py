"""The Kubernetes API of the simulated fleet over HTTP, as much of it as the official client and kubectl need.

Object store, watch log and wire formats belong here; what exists at an instant is the world's, policy is nobody's.
"""

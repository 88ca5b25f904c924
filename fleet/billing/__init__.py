"""Floor 2: the simulated providers' prices, what they bill for the fleet, and the files they send. All invented.

They compute their bills from the world itself by code of their own, so that charges computed from rate cards can be
compared with them and found wrong.
"""

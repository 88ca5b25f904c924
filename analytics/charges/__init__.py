"""Charges from node-hours, rate cards and commitments: metering, pricing, commitments, amortization."""

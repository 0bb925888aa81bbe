"""What the system tests are made of: real servers, independent clients, plain recomputation.

Nothing here imports Sluice's own code: the gateway is spoken to as its users speak to it, and what
it should answer is computed a second time, slowly and plainly.
"""

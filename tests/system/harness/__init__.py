"""What the system tests consist of: real servers, independent clients, and a second computation of the results.

Nothing here imports Sluice's own code: the tests talk to the gateway like users do, and compute what it should answer
in a slow and simple way.
"""

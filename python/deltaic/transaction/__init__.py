"""Transactions: the loop that makes a version of staged actions, and the rules by which commits conflict."""

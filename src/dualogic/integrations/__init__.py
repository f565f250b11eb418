"""Rules in other people's trainers: one module for each, imported only by who uses it."""

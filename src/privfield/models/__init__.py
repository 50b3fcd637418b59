"""Values with a probability: Markov random fields, Ising models, polynomials, networks."""

"""Plain numeric solvers on arrays: no privacy, no models."""

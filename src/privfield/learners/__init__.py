"""The learners people call: measure, then estimate, in scikit-learn manners."""

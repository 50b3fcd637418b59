"""Values with a probability: answers, samples, files, exports."""

from privfield.models import conversions as conversions  # models find their other forms there
